"""The pages: one router for each group of addresses. Every route must be in the table of `matrixdp.studio.roles`."""

from matrixdp.studio.pages.datasets import router as datasets
from matrixdp.studio.pages.design import router as design
from matrixdp.studio.pages.requests import router as requests
from matrixdp.studio.pages.results import router as results
from matrixdp.studio.pages.schema import router as schema
from matrixdp.studio.pages.sign_in import router as sign_in

routers = (sign_in, datasets, schema, design, requests, results)

"""The pages: one router for each group of addresses. Every route must be in the table of `matrixdp.studio.roles`."""

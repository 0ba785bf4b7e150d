"""Reports of a release: pictures, tables, a page that explains the result, and a folder with all of it."""

"""How objects show themselves in notebooks: HTML, data frames and plots of arrays with names."""

// Formulas: the build marks them (pymdownx.arithmatex), KaTeX draws them. In a page without JavaScript their source is read.
for (const place of document.querySelectorAll(".arithmatex")) {
  const [, open, source] = place.textContent.trim().match(/^(\\[([])([^]*)\\[)\]]$/) ?? [];
  if (open) katex.render(source, place, { displayMode: open === "\\[", throwOnError: false });
}

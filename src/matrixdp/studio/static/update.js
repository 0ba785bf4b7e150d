// hx-swap="update": new content changes the old one where both are alike, instead of replacing it. That is quicker, and
// what stays keeps its focus, its scroll position and its charts. In the content that the server sends,
// elements with data-made have children that scripts have made, which stay;
// elements with data-new are always replaced, and the requests of the old ones are given up.
(function () {
  "use strict";
  let changed = []; // fields of the old content that a person has changed since the request was sent

  htmx.defineExtension("update", {
    handleSwap: function (style, target, fragment) {
      if (style !== "update") return false;
      const added = [];
      updateChildren(target, fragment, added);
      for (const [name, value] of changed) {
        const field = target.querySelector('select[name="' + CSS.escape(name) + '"]');
        if (field && Array.from(field.options).some((one) => one.value === value)) field.value = value;
      }
      return added;
    },
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const sent = event.detail.requestConfig.formData;
    changed = [];
    for (const field of event.detail.target.querySelectorAll("select[name]")) {
      if (sent.has(field.name) && sent.get(field.name) !== field.value) changed.push([field.name, field.value]);
    }
  });

  function isAlike(old, fresh) {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return false;
    if (old.nodeType !== Node.ELEMENT_NODE) return true;
    return old.id === fresh.id && old.className === fresh.className && !fresh.hasAttribute("data-new");
  }

  function updateChildren(old, fresh, added) {
    let place = old.firstChild;
    for (const child of Array.from(fresh.childNodes)) {
      let found = place;
      while (found && !isAlike(found, child)) found = found.nextSibling;
      if (!found) {
        old.insertBefore(child, place);
        added.push(child);
        continue;
      }
      while (place !== found) place = removeNode(place);
      place = found.nextSibling;
      updateNode(found, child, added);
    }
    while (place) place = removeNode(place);
  }

  // Requests of what is removed are given up: browsers send only a few at a time, and a newer one would wait for them.
  function removeNode(node) {
    const next = node.nextSibling;
    const parts = node.nodeType === Node.ELEMENT_NODE ? [node, ...node.querySelectorAll("[data-new]")] : [];
    for (const part of parts) htmx.trigger(part, "htmx:abort");
    node.remove();
    return next;
  }

  function updateNode(old, fresh, added) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.hasAttribute("data-made")) return;
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const name of old.getAttributeNames()) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    updateChildren(old, fresh, added);
    if (old.nodeName === "SELECT") old.value = fresh.value;
  }
})();

// matrixdp studio: what HTML and htmx do not do themselves. No inline script, no eval.
// It is loaded before the page, so that no click and no step in the history comes too early for it.
(function () {
  "use strict";

  // Buttons with data-copy="#id" copy the text of that element.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const label = button.textContent;
    const source = document.querySelector(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange(); // no access to the clipboard: select the text instead
      range.selectNodeContents(source);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      button.textContent = "Press Ctrl+C";
    }
    window.setTimeout(() => { button.textContent = label; }, 1600);
  });

  // A range input with data-log="#id" is a logarithmic slider for the number input #id. It counts steps of a decade.
  function setFromSlider(slider) {
    const number = document.querySelector(slider.dataset.log);
    const value = Math.pow(10, Number(slider.value) / Number(slider.dataset.steps));
    number.value = String(Number(value.toPrecision(3)));
    describeSlider(slider, number.value);
  }
  function setFromNumber(number, slider) {
    const value = Number(number.value.replace(",", "."));
    if (value > 0) slider.value = String(Math.round(Math.log10(value) * Number(slider.dataset.steps)));
    describeSlider(slider, number.value);
  }
  function describeSlider(slider, value) {
    slider.setAttribute("aria-valuetext", (slider.dataset.name || "") + " " + value);
  }
  document.addEventListener("input", (event) => {
    const target = event.target;
    if (target.dataset && target.dataset.log) setFromSlider(target);
    else if (target.id) {
      const slider = document.querySelector('[data-log="#' + CSS.escape(target.id) + '"]');
      if (slider) setFromNumber(target, slider);
    }
  }, true); // before htmx reads the form

  // Buttons with data-set="#id" data-value="..." put a value into an input, as if it had been typed.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-set]");
    if (!button) return;
    const input = document.querySelector(button.dataset.set);
    input.value = button.dataset.value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // Buttons with data-check="NAME" data-to="on|off" set all check boxes of that name.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-check]");
    if (!button) return;
    let last = null;
    for (const box of button.form.querySelectorAll('input[type="checkbox"]')) {
      if (box.name === button.dataset.check) { box.checked = button.dataset.to === "on"; last = box; }
    }
    if (last) last.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // A form is sent once; the server answers a repeated request id with the first result in any case.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) { event.preventDefault(); return; }
    if (form.hasAttribute("data-once")) form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => { // back from the next page: the form can be changed and sent again
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // The id of a form stays in the history: going back and sending the form again is the same request.
  document.addEventListener("DOMContentLoaded", () => {
    const field = document.querySelector('input[name="form_id"]');
    if (!field) return;
    const back = performance.getEntriesByType("navigation").some((one) => one.type === "back_forward");
    const kept = back && history.state && history.state.formId;
    if (kept) field.value = kept;
    else history.replaceState({ ...history.state, formId: field.value }, "");
  });

  // A link to a field of a column that is closed opens the column.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#column."]');
    const column = link && document.getElementById(link.hash.slice(1))?.closest(".column");
    if (column) column.open = true;
  });

  // A select with data-address goes to the address of its option.
  document.addEventListener("change", (event) => {
    if (event.target.hasAttribute("data-address")) window.location.assign(event.target.value);
  });

  // Fields with data-for="..." belong to these queries alone, those with data-not-for="..." to all others.
  function switchFields() {
    const select = document.querySelector("[data-switch]");
    if (!select) return;
    const hint = select.selectedOptions[0].dataset.hint;
    if (hint) document.getElementById(select.id + "-hint").textContent = hint;
    for (const part of document.querySelectorAll("[data-for]")) {
      part.hidden = !part.dataset.for.split(" ").includes(select.value);
    }
    for (const part of document.querySelectorAll("[data-not-for]")) {
      part.hidden = part.dataset.notFor.split(" ").includes(select.value);
    }
  }
  document.addEventListener("input", (event) => {
    if (event.target.hasAttribute("data-switch")) switchFields();
  });

  // The address of a page whose form has data-kept contains the form's fields, so that a reload and the back button
  // keep them.
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!form || !form.hasAttribute("data-kept")) return;
    const kept = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (value && !["csrf_token", "form_id", "purpose"].includes(name)) kept.append(name, value);
    }
    window.history.replaceState(window.history.state, "", window.location.pathname + "?" + kept);
  });

  // Enter in a field does not send a form with data-kept, which is followed while it is filled in; in a field with
  // data-enter="#id" it presses that button.
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || field.nodeName !== "INPUT" || !field.form || !field.form.hasAttribute("data-kept")) return;
    event.preventDefault();
    if (field.dataset.enter) document.querySelector(field.dataset.enter).click();
  });

  // An answer with data-answer="#button" is for the form as it was: it goes when another field than data-except changes.
  document.addEventListener("input", (event) => {
    for (const part of document.querySelectorAll("[data-answer]")) {
      if (part.dataset.except.split(" ").includes(event.target.id)) continue;
      if (window.htmx) htmx.trigger(part.dataset.answer, "htmx:abort");
      part.replaceChildren();
    }
  });

  // A form that is disabled is about to be replaced, and would send no field: only the button that does it asks.
  document.addEventListener("htmx:configRequest", (event) => {
    const { elt } = event.detail;
    if (elt.nodeName !== "BUTTON" && elt.closest("fieldset:disabled")) event.preventDefault();
  });

  // A page that is being left is not loaded again by an answer: that would end the way to the next page.
  let left = -Infinity;
  const isLeft = () => performance.now() - left < 10000; // a download does not leave the page
  window.addEventListener("beforeunload", () => { left = performance.now(); });
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (isLeft() && event.detail.xhr.getResponseHeader("HX-Refresh")) event.preventDefault();
  });

  // A step in the history before htmx is there to follow it.
  let early = false;
  const noteStep = () => { early = true; };
  window.addEventListener("popstate", noteStep);
  document.addEventListener("DOMContentLoaded", () => {
    window.removeEventListener("popstate", noteStep);
    if (early) window.location.reload();
  });

  // Requests of the page that fail: what it shows may be out of date.
  function complain(text) {
    const place = document.getElementById("trouble");
    place.textContent = text;
    place.hidden = !text;
  }
  document.addEventListener("htmx:responseError", (event) => {
    const page = new DOMParser().parseFromString(event.detail.xhr.response, "text/html");
    const reason = page.querySelector("[role=alert]");
    complain((reason ? reason.textContent : "The server answered with an error.") + " This page may be out of date.");
  });
  document.addEventListener("htmx:sendError", () => {
    if (!isLeft()) complain("The server does not answer, so this page may be out of date.");
  });
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) complain(""); });

  // An answer to an element that was replaced meanwhile is out of date. What a person has opened stays open when the
  // server sends new content; fields say whether they are valid.
  let open = [];
  const nameOf = (part) => part.dataset.name || part.id; // numbers in ids of columns change when one is removed
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.detail.requestConfig.elt.isConnected) event.detail.shouldSwap = false;
    const inside = event.detail.target.querySelectorAll("details[open][id]");
    open = Array.from(inside, nameOf);
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    event.detail.target.removeAttribute("aria-busy");
    switchFields();
    for (const part of document.querySelectorAll("[data-into]")) { // text that belongs elsewhere
      const place = document.querySelector(part.dataset.into);
      if (place) place.textContent = part.textContent;
      part.remove();
    }
    for (const part of open.length ? document.querySelectorAll("details[id]") : []) {
      if (open.includes(nameOf(part))) part.open = true;
    }
    for (const error of document.querySelectorAll(".error[id$='-error']")) {
      const input = document.getElementById(error.id.slice(0, -6));
      if (input) input.toggleAttribute("aria-invalid", false);
      if (input && error.textContent) input.setAttribute("aria-invalid", "true");
      const folded = error.textContent && error.closest("details:not([open])");
      if (folded) folded.open = true;
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    switchFields();
    for (const slider of document.querySelectorAll("[data-log]")) {
      setFromNumber(document.querySelector(slider.dataset.log), slider);
    }
  });
})();

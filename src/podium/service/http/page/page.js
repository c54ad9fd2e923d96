"use strict";
for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const shown = form.querySelector("pre");
    const area = form.querySelector("textarea");
    const headers = {};
    if (area) headers["Content-Type"] = "application/json";
    shown.hidden = false;
    try {
      const reply = await fetch(form.dataset.path, {
        method: form.dataset.method, headers, body: area ? area.value : undefined,
      });
      const text = await reply.text();
      const isJson = (reply.headers.get("content-type") || "").includes("json");
      const body = isJson ? JSON.stringify(JSON.parse(text), null, 2) : text;
      shown.textContent = reply.status + " " + reply.statusText + "\n\n" + body;
    } catch (error) {
      shown.textContent = String(error);
    }
  });
}

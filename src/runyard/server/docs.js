// A page to read and try the API: everything on it comes from openapi.json of the same server.
"use strict";

const METHODS = ["get", "post", "put", "delete"];
const LONGEST_SHOWN = 200000; // characters of an answer: a followed log may go on for ever
const tokenField = document.getElementById("token");

function make(tag, options = {}, ...children) {
  const element = Object.assign(document.createElement(tag), options);
  element.append(...children);
  return element;
}

async function start() {
  tokenField.value = sessionStorage.getItem("runyard-token") || "";
  tokenField.addEventListener("input", () => sessionStorage.setItem("runyard-token", tokenField.value));
  const spec = await (await fetch("openapi.json")).json();
  document.getElementById("version").textContent = spec.info.version;
  document.getElementById("about").textContent = spec.info.description;
  const main = document.getElementById("operations");
  for (const [tag, operations] of byTag(spec)) {
    main.append(make("section", {}, make("h2", { textContent: tag }), ...operations.map((one) => show(spec, one))));
  }
  document.getElementById("find").addEventListener("input", (event) => find(event.target.value.toLowerCase()));
}

function byTag(spec) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const method of METHODS.filter((name) => name in methods)) {
      const operation = { path, method, ...methods[method] };
      const tag = operation.tags[0];
      groups.set(tag, [...(groups.get(tag) || []), operation]);
    }
  }
  return groups;
}

function find(word) {
  for (const element of document.querySelectorAll("details.operation")) {
    element.hidden = !element.dataset.words.includes(word);
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector("details.operation:not([hidden])");
  }
}

function show(spec, operation) {
  const element = make("details", { className: "operation", id: operation.operationId },
    make("summary", {},
      make("span", { className: `method ${operation.method}`, textContent: operation.method.toUpperCase() }),
      make("code", { textContent: operation.path }),
      make("span", { className: "about", textContent: operation.summary })));
  element.dataset.words = `${operation.method} ${operation.path} ${operation.summary}`.toLowerCase();
  element.addEventListener("toggle", () => element.children.length > 1 || element.append(form(spec, operation)));
  return element;
}

function form(spec, operation) {
  const inputs = operation.parameters.map((parameter) => [parameter, parameterInput(parameter)]);
  const body = bodyInput(operation);
  const answer = make("div");
  const send = make("button", { textContent: "Send" });
  const stop = make("button", { textContent: "Stop", hidden: true });
  send.addEventListener("click", () => perform(spec, operation, inputs, body, answer, send, stop));
  return make("div", {},
    make("p", { textContent: operation.description }),
    ...(inputs.length ? [make("h3", { textContent: "Parameters" }), parameterTable(inputs)] : []),
    ...(body ? [make("h3", { textContent: "Body" }), body, ...bodySchema(spec, operation)] : []),
    send, stop, answer,
    make("h3", { textContent: "Answers" }), answersTable(operation));
}

function parameterInput(parameter) {
  const schema = parameter.schema;
  const hint = schema.default !== undefined ? String(schema.default) : (schema.enum || schema.items?.enum || []).join(" | ");
  return make("input", { placeholder: hint, required: parameter.required, ariaLabel: parameter.name });
}

function parameterTable(inputs) {
  return make("table", {}, ...inputs.map(([parameter, input]) => make("tr", {},
    make("td", {}, make("code", { textContent: parameter.name + (parameter.required ? " *" : "") })),
    make("td", {}, input),
    make("td", { textContent: `${parameter.description} (${parameter.in})` }))));
}

function bodyInput(operation) {
  const content = operation.requestBody?.content;
  if (!content) return null;
  if (!("application/json" in content)) return make("input", { type: "file" });
  const example = content["application/json"].example;
  return make("textarea", { spellcheck: false, value: example === undefined ? "{}" : JSON.stringify(example, null, 2) });
}

function bodySchema(spec, operation) {
  const schema = operation.requestBody.content["application/json"]?.schema;
  if (!schema) return [];
  const text = JSON.stringify(resolve(spec, schema, 0), null, 2);
  return [make("details", {}, make("summary", { textContent: "Schema" }), make("pre", { textContent: text }))];
}

function resolve(spec, schema, depth) {
  if (Array.isArray(schema)) return schema.map((item) => resolve(spec, item, depth));
  if (typeof schema !== "object" || schema === null || depth > 12) return schema;
  if (schema.$ref) return resolve(spec, spec.components.schemas[schema.$ref.split("/").pop()], depth + 1);
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, resolve(spec, value, depth + 1)]));
}

function answersTable(operation) {
  return make("table", {}, ...Object.entries(operation.responses).map(([status, answer]) => make("tr", {},
    make("td", {}, make("code", { textContent: status })), make("td", { textContent: answer.description }))));
}

function request(spec, operation, inputs, body) {
  let path = operation.path;
  const query = new URLSearchParams();
  const headers = tokenField.value ? { Authorization: `Bearer ${tokenField.value.trim()}` } : {};
  for (const [parameter, input] of inputs.filter(([, input]) => input.value !== "")) {
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (parameter.in === "header") headers[parameter.name] = input.value;
    else query.append(parameter.name, input.value);
  }
  const options = { method: operation.method.toUpperCase(), headers };
  if (body) Object.assign(options, { body: body.type === "file" ? body.files[0] : body.value });
  if (body && body.type !== "file") headers["Content-Type"] = "application/json";
  return [query.size ? `${path}?${query}` : path, options];
}

async function perform(spec, operation, inputs, body, answer, send, stop) {
  const missing = inputs.find(([parameter, input]) => parameter.required && input.value === "");
  if (missing) return missing[1].focus();
  const [url, options] = request(spec, operation, inputs, body);
  const abort = new AbortController();
  const status = make("p", { className: "status", textContent: "…" });
  const text = make("pre");
  answer.replaceChildren(make("pre", { textContent: curlLine(url, options) }), status, text);
  stop.onclick = () => abort.abort();
  send.disabled = !(stop.hidden = false);
  try {
    await receive(await fetch(url, { ...options, signal: abort.signal }), status, text);
  } catch (error) {
    text.append(`\n[${abort.signal.aborted ? "stopped" : error.message}]`);
  }
  send.disabled = !(stop.hidden = true);
}

async function receive(response, status, text) {
  const type = response.headers.get("content-type") || "";
  status.className = `status ${response.ok ? "good" : "bad"}`;
  status.textContent = `${response.status} ${response.statusText} · ${type} · ${response.headers.get("x-request-id") || ""}`;
  if (type.startsWith("application/json")) {
    text.textContent = JSON.stringify(await response.json(), null, 2);
    return;
  }
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text.textContent = (text.textContent + decoder.decode(part.value, { stream: true })).slice(-LONGEST_SHOWN);
  }
}

function curlLine(url, options) {
  const quote = (word) => `'${word.replaceAll("'", "'\\''")}'`;
  const words = ["curl", "-X", options.method, quote(location.origin + url)];
  for (const [name, value] of Object.entries(options.headers)) {
    words.push("-H", name === "Authorization" ? '"Authorization: Bearer $RUNYARD_TOKEN"' : quote(`${name}: ${value}`));
  }
  if (typeof options.body === "string") words.push("--data-binary", quote(options.body));
  return words.join(" ");
}

start();

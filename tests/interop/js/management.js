"use strict";
// The server's own interface, asked as docs/management.md says: splits, jobs, snapshots, copies.

const assert = require("node:assert/strict");
const { createHmac } = require("node:crypto");
const { ENDPOINTS, KEY } = require("./support");

/** The answer as JSON; a refusal throws. */
async function manage(endpoint, key, method, path, body) {
  const link = `_pleiad/v1/${path}`;
  const date = new Date().toUTCString();
  const signed = `${method.toLowerCase()}\npleiad\n${link.split("?")[0]}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(signed).digest("base64");
  const headers = { "x-ms-date": date, authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`) };
  const answer = await fetch(new URL(`/${link}`, endpoint), { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const ask = (method, container, path, body) =>
  manage(ENDPOINTS.http, KEY, method, `containers/${container.database.id}/${container.id}/${path}`, body);

/** The largest partition becomes two; resolves when it has happened. */
const split = (container) => ask("POST", container, "partitions/split?wait=true", {});

/** All partitions become one. */
async function merge(container) {
  const { partitions } = await ask("GET", container, "partitions");
  await ask("POST", container, "partitions/merge?wait=true", { ids: partitions.map((one) => one.id) });
}

module.exports = { manage, merge, split };

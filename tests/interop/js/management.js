"use strict";
// Client of the management API (docs/management.md): splits, jobs, snapshots, copies.

const assert = require("node:assert/strict");
const { createHmac } = require("node:crypto");
const { ENDPOINTS, KEY } = require("./support");

/** The response as JSON; an error response throws. */
async function manage(endpoint, key, method, path, body) {
  const link = `_pleiad/v1/${path}`;
  const date = new Date().toUTCString();
  const signed = `${method.toLowerCase()}\npleiad\n${link.split("?")[0]}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(signed).digest("base64");
  const headers = { "x-ms-date": date, authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`) };
  const response = await fetch(new URL(`/${link}`, endpoint), { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const manageContainer = (method, container, path, body) =>
  manage(ENDPOINTS.http, KEY, method, `containers/${container.database.id}/${container.id}/${path}`, body);

/** Splits the largest partition; resolves when it has happened. */
const split = (container) => manageContainer("POST", container, "partitions/split?wait=true", {});

/** Merges all partitions; resolves when it has happened. */
async function merge(container) {
  const { partitions } = await manageContainer("GET", container, "partitions");
  await manageContainer("POST", container, "partitions/merge?wait=true", { ids: partitions.map((one) => one.id) });
}

module.exports = { manage, merge, split };

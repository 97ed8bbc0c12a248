"use strict";
// The one place that sets the SDK up. Every suite runs twice: over http and over https.
//
// The server is not ours to start: PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it is.
// The SDK is the published one, unmodified; a test that needs a trick to pass has found a bug in the server.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const https = require("node:https");
const { randomUUID } = require("node:crypto");
const { after, before, describe } = require("node:test");
const { CosmosClient } = require("@azure/cosmos");

const ENDPOINTS = { http: process.env.PLEIAD_ENDPOINT, https: process.env.PLEIAD_ENDPOINT_HTTPS };
const KEY = process.env.PLEIAD_KEY;

let trusting; // one agent for all https clients of a process
function agent() {
  trusting ??= new https.Agent({ ca: fs.readFileSync(process.env.PLEIAD_CA_FILE), keepAlive: true, maxSockets: 200 });
  return trusting;
}

/** A client of its own, with caches of its own. */
function connect(scheme, options = {}) {
  const way = scheme === "https" ? { agent: agent() } : {};
  return new CosmosClient({ endpoint: ENDPOINTS[scheme], key: KEY, ...way, ...options });
}

const unique = (prefix) => `${prefix}-${randomUUID().slice(0, 13)}`;

/**
 * Describes a suite once per scheme. `body(world)` registers tests that use, when they run:
 * `world.client`, `world.database` (gone at the end), `world.make(...)` and `world.connect(...)`.
 */
function overBoth(title, body) {
  for (const scheme of ["http", "https"]) {
    describe(`${title} over ${scheme}`, { skip: !ENDPOINTS[scheme] }, () => {
      const world = { scheme, connect: (options) => keep(connect(scheme, options)) };
      const opened = [];
      const keep = (client) => (opened.push(client), client);

      /** make("/pk"), make(["/a", "/b"]), make("/pk", { throughput: 12000 }): a fresh container. */
      world.make = async (paths, more = {}) => {
        const { container } = await world.database.containers.create({ id: unique("c"), partitionKey: key(paths), ...more });
        return container;
      };
      before(async () => {
        world.client = world.connect();
        ({ database: world.database } = await world.client.databases.create({ id: unique("js") }));
      });
      after(async () => {
        await world.database?.delete();
        opened.forEach((client) => client.dispose());
        trusting?.destroy();
        trusting = undefined;
      });
      body(world);
    });
  }
}

/** A key definition: one path, several levels, or a definition as it is. */
function key(paths, version = 2) {
  if (typeof paths === "string") return { paths: [paths], kind: "Hash", version };
  if (Array.isArray(paths)) return { paths, kind: "MultiHash", version };
  return paths;
}

/** The promise must fail with this status, and this sub-status if one is given. */
async function refused(promise, status, substatus) {
  const error = await promise.then(
    () => assert.fail(`expected a refusal with ${status}`),
    (error) => error,
  );
  assert.equal(error.code, status, error.message ?? String(error));
  if (substatus !== undefined) assert.equal(error.substatus, substatus, error.message);
  return error;
}

/** A point read; this SDK answers a missing item with 404 and no resource instead of throwing. */
async function missing(item) {
  const { statusCode, resource } = await item.read();
  assert.equal(statusCode, 404);
  assert.equal(resource, undefined);
}

const SYSTEM_PROPERTIES = ["_rid", "_self", "_etag", "_ts", "_attachments"];

/** What the user wrote: the item without the properties the server adds. */
const plain = (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !SYSTEM_PROPERTIES.includes(name)));

/** 0 … n-1 */
const count = (n) => [...Array(n).keys()];

module.exports = { ENDPOINTS, KEY, SYSTEM_PROPERTIES, connect, count, key, missing, overBoth, plain, refused, unique };

"use strict";
// Sets up the SDK for all suites. Every suite runs twice: over http and over https.
//
// xtask starts the server; PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it is.
// The SDK is the published one, unmodified; a test that needs a workaround to pass has found a bug in the server.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const https = require("node:https");
const { randomUUID } = require("node:crypto");
const { after, before, describe } = require("node:test");
const { CosmosClient } = require("@azure/cosmos");

const ENDPOINTS = { http: process.env.PLEIAD_ENDPOINT, https: process.env.PLEIAD_ENDPOINT_HTTPS };
const KEY = process.env.PLEIAD_KEY;

let sharedAgent; // one agent for all https clients of the process
function agent() {
  sharedAgent ??= new https.Agent({ ca: fs.readFileSync(process.env.PLEIAD_CA_FILE), keepAlive: true, maxSockets: 200 });
  return sharedAgent;
}

/** A separate client, with its own caches. */
function connect(scheme, options = {}) {
  const transport = scheme === "https" ? { agent: agent() } : {};
  return new CosmosClient({ endpoint: ENDPOINTS[scheme], key: KEY, ...transport, ...options });
}

const unique = (prefix) => `${prefix}-${randomUUID().slice(0, 13)}`;

/**
 * Describes a suite once per scheme. `body(world)` registers tests that use, when they run:
 * `world.client`, `world.database` (deleted at the end), `world.make(...)` and `world.connect(...)`.
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
        sharedAgent?.destroy();
        sharedAgent = undefined;
      });
      body(world);
    });
  }
}

/** A key definition: one path, several levels, or a complete definition. */
function key(paths, version = 2) {
  if (typeof paths === "string") return { paths: [paths], kind: "Hash", version };
  if (Array.isArray(paths)) return { paths, kind: "MultiHash", version };
  return paths;
}

/** The promise must fail with this status, and with this sub-status if one is given. */
async function refused(promise, status, substatus) {
  const error = await promise.then(
    () => assert.fail(`expected an error with ${status}`),
    (error) => error,
  );
  assert.equal(error.code, status, error.message ?? String(error));
  if (substatus !== undefined) assert.equal(error.substatus, substatus, error.message);
  return error;
}

/** A point read of a missing item; this SDK returns 404 and no resource instead of throwing. */
async function missing(item) {
  const { statusCode, resource } = await item.read();
  assert.equal(statusCode, 404);
  assert.equal(resource, undefined);
}

const SYSTEM_PROPERTIES = ["_rid", "_self", "_etag", "_ts", "_attachments"];

/** The item as the user wrote it, without the properties that the server adds. */
const plain = (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !SYSTEM_PROPERTIES.includes(name)));

/** 0 … n-1 */
const count = (n) => [...Array(n).keys()];

module.exports = { ENDPOINTS, KEY, SYSTEM_PROPERTIES, connect, count, key, missing, overBoth, plain, refused, unique };

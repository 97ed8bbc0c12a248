"use strict";
// S67: beyond its throughput a container answers 429, and the SDK waits for the given time and retries by itself.

const assert = require("node:assert/strict");
const { after, describe, test } = require("node:test");
const { CosmosClient } = require("@azure/cosmos");
const { KEY, refused, unique } = require("./support");

const ENDPOINT = process.env.PLEIAD_ENDPOINT_LIMITED;
const EXPENSIVE = "x".repeat(500_000); // about 180 RU to write

describe("throttling", { skip: !ENDPOINT }, () => {
  const opened = [];
  after(() => opened.forEach((client) => client.dispose()));

  async function make(maxRetryAttemptCount) {
    const retryOptions = { maxRetryAttemptCount, fixedRetryIntervalInMilliseconds: 0, maxWaitTimeInSeconds: 30 };
    const client = new CosmosClient({ endpoint: ENDPOINT, key: KEY, connectionPolicy: { retryOptions } });
    opened.push(client);
    const { database } = await client.databases.createIfNotExists({ id: "throttling-js" });
    const { container } = await database.containers.create({ id: unique("c"), partitionKey: "/pk", throughput: 400 });
    return container;
  }

  test("S67: the SDK waits and retries", async () => {
    const container = await make(9);
    const headers = [];
    for (let n = 0; n < 6; n++) {
      headers.push((await container.items.create({ id: `${n}`, pk: "hot", text: EXPENSIVE })).headers);
    }
    assert.ok(headers.some((seen) => seen["x-ms-throttle-retry-count"] > 0));
  });

  test("S67: without retries a client gets 429 with the reason", async () => {
    const container = await make(0);
    for (let n = 0; n < 3; n++) await container.items.create({ id: `${n}`, pk: "hot", text: EXPENSIVE });
    const error = await refused(container.item("0", "hot").read(), 429, 3200);
    assert.match(error.message ?? error.body?.message, /busiest partition key is \["hot"\]/);
  });
});

"use strict";
// Opening the account: the response to GET /, and authentication.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { ENDPOINTS, KEY, overBoth, refused } = require("./support");

overBoth("account", (world) => {
  test("can be read", async () => {
    const { resource } = await world.client.getDatabaseAccount();
    assert.equal(resource.consistencyPolicy, "Session");
    assert.ok(resource.writableLocations.length > 0);
    assert.ok(resource.readableLocations.length > 0);
  });

  test("locations are the endpoint that the client uses", async () => {
    const { resource } = await world.client.getDatabaseAccount();
    const used = new URL(ENDPOINTS[world.scheme]);
    for (const location of [...resource.writableLocations, ...resource.readableLocations]) {
      assert.equal(new URL(location.databaseAccountEndpoint).origin, used.origin);
    }
  });

  test("a wrong key is 401", async () => {
    const key = Buffer.from("not the key of this account").toString("base64");
    await refused(world.connect({ key }).databases.readAll().fetchAll(), 401);
  });

  test("a connection string works", { skip: world.scheme === "https" && "a connection string cannot contain a CA" }, async () => {
    const connectionString = `AccountEndpoint=${ENDPOINTS.http}/;AccountKey=${KEY};`;
    const client = world.connect({ endpoint: undefined, key: undefined, connectionString });
    assert.equal((await client.database(world.database.id).read()).statusCode, 200);
  });
});

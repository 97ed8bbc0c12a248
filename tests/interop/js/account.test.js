"use strict";
// Opening the account: what GET / promises, and who is let in.

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

  test("locations lead back to where the client came from", async () => {
    const { resource } = await world.client.getDatabaseAccount();
    const asked = new URL(ENDPOINTS[world.scheme]);
    for (const location of [...resource.writableLocations, ...resource.readableLocations]) {
      assert.equal(new URL(location.databaseAccountEndpoint).origin, asked.origin);
    }
  });

  test("a wrong key is 401", async () => {
    const key = Buffer.from("not the key of this account").toString("base64");
    await refused(world.connect({ key }).databases.readAll().fetchAll(), 401);
  });

  test("a connection string opens it too", { skip: world.scheme === "https" && "no place for a CA in a string" }, async () => {
    const connectionString = `AccountEndpoint=${ENDPOINTS.http}/;AccountKey=${KEY};`;
    const client = world.connect({ endpoint: undefined, key: undefined, connectionString });
    assert.equal((await client.database(world.database.id).read()).statusCode, 200);
  });
});

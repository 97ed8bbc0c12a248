"use strict";
// Bearer tokens and roles: a TokenCredential, as @azure/identity would be one, and what its principal may do.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { createPrivateKey, sign } = require("node:crypto");
const { test } = require("node:test");
const { split } = require("./management");
const { overBoth, refused, unique } = require("./support");

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

function token(claims) {
  const key = JSON.parse(fs.readFileSync(path.join(process.env.PLEIAD_TOKENS, "private_key.json")));
  const signed = `${part({ typ: "JWT", alg: "RS256", kid: key.kid })}.${part(claims)}`;
  const signature = sign("sha256", Buffer.from(signed), createPrivateKey({ key, format: "jwk" }));
  return `${signed}.${signature.toString("base64url")}`;
}

/** Good for an hour, unless told otherwise. */
const credential = (principal, claims = {}) => ({
  getToken: async () => {
    const exp = Math.floor(Date.now() / 1000) + 3600;
    const known = { iss: "https://issuer.example/", aud: "https://cosmos.azure.com", oid: principal, exp };
    return { token: token({ ...known, ...claims }), expiresOnTimestamp: exp * 1000 };
  },
});

overBoth("roles", (world) => {
  const skip = world.scheme === "http" && "the SDK sends bearer tokens over https only";
  const carrying = (container, aadCredentials) =>
    world.connect({ key: undefined, aadCredentials }).database(world.database.id).container(container.id);
  const shop = async () => {
    const container = await world.make("/pk", { throughput: 30000 });
    for (let n = 0; n < 6; n++) await container.items.create({ id: `${n}`, pk: "ab"[n % 2], n });
    return container;
  };

  test("a reader reads and does not write", { skip }, async () => {
    const container = await shop();
    const mine = carrying(container, credential("reader"));
    for (const _ of [1, 2]) {
      assert.equal((await mine.item("0", "a").read()).resource.n, 0);
      const { resources } = await mine.items.query("SELECT VALUE c.n FROM c ORDER BY c.n").fetchAll();
      assert.deepEqual(resources, [0, 1, 2, 3, 4, 5]);
      await split(container);
    }
    await refused(mine.items.create({ id: "new", pk: "a" }), 403, 5302);
    await refused(mine.item("0", "a").delete(), 403, 5302);
  });

  test("a contributor writes and does not manage", { skip }, async () => {
    const container = await shop();
    const mine = carrying(container, credential("contributor"));
    await mine.items.upsert({ id: "new", pk: "a" });
    await mine.item("new", "a").patch([{ op: "add", path: "/n", value: 1 }]);
    await mine.item("new", "a").delete();
    await refused(mine.delete(), 403, 5300);
    await refused(mine.scripts.storedProcedures.create({ id: unique("s"), body: "function () {}" }), 403, 5300);
    assert.equal((await container.read()).statusCode, 200);
  });

  test("a role of one's own allows what it says", { skip }, async () => {
    const mine = carrying(await shop(), credential("collector"));
    await mine.items.create({ id: "new", pk: "a" });
    await refused(mine.item("new", "a").read(), 403, 5302);
  });

  test("a group counts, a stranger and a token that has expired do not", { skip }, async () => {
    const container = await shop();
    const member = carrying(container, credential("somebody", { groups: ["reader"] }));
    assert.equal((await member.item("0", "a").read()).resource.n, 0);
    await refused(carrying(container, credential("somebody")).item("0", "a").read(), 403, 5301);
    await refused(carrying(container, credential("reader", { exp: 1 })).item("0", "a").read(), 401);
  });
});

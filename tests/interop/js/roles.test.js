"use strict";
// Bearer tokens and roles: a TokenCredential, such as those of @azure/identity, and the permissions of its principal.

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

/** Valid for an hour, unless `claims` overrides it. */
const credential = (principal, claims = {}) => ({
  getToken: async () => {
    const exp = Math.floor(Date.now() / 1000) + 3600;
    const known = { iss: "https://issuer.example/", aud: "https://cosmos.azure.com", oid: principal, exp };
    return { token: token({ ...known, ...claims }), expiresOnTimestamp: exp * 1000 };
  },
});

overBoth("roles", (world) => {
  const skip = world.scheme === "http" && "the SDK sends bearer tokens over https only";
  const withCredential = (container, aadCredentials) =>
    world.connect({ key: undefined, aadCredentials }).database(world.database.id).container(container.id);
  const shop = async () => {
    const container = await world.make("/pk", { throughput: 30000 });
    for (let n = 0; n < 6; n++) await container.items.create({ id: `${n}`, pk: "ab"[n % 2], n });
    return container;
  };

  test("a reader may read and not write", { skip }, async () => {
    const container = await shop();
    const target = withCredential(container, credential("reader"));
    for (const _ of [1, 2]) {
      assert.equal((await target.item("0", "a").read()).resource.n, 0);
      const { resources } = await target.items.query("SELECT VALUE c.n FROM c ORDER BY c.n").fetchAll();
      assert.deepEqual(resources, [0, 1, 2, 3, 4, 5]);
      await split(container);
    }
    await refused(target.items.create({ id: "new", pk: "a" }), 403, 5302);
    await refused(target.item("0", "a").delete(), 403, 5302);
  });

  test("a contributor may write and not manage", { skip }, async () => {
    const container = await shop();
    const target = withCredential(container, credential("contributor"));
    await target.items.upsert({ id: "new", pk: "a" });
    await target.item("new", "a").patch([{ op: "add", path: "/n", value: 1 }]);
    await target.item("new", "a").delete();
    await refused(target.delete(), 403, 5300);
    await refused(target.scripts.storedProcedures.create({ id: unique("s"), body: "function () {}" }), 403, 5300);
    assert.equal((await container.read()).statusCode, 200);
  });

  test("a custom role allows only its actions", { skip }, async () => {
    const target = withCredential(await shop(), credential("collector"));
    await target.items.create({ id: "new", pk: "a" });
    await refused(target.item("new", "a").read(), 403, 5302);
  });

  test("a role of a group applies; a principal without role is 403, an expired token 401", { skip }, async () => {
    const container = await shop();
    const member = withCredential(container, credential("unassigned", { groups: ["reader"] }));
    assert.equal((await member.item("0", "a").read()).resource.n, 0);
    await refused(withCredential(container, credential("unassigned")).item("0", "a").read(), 403, 5301);
    await refused(withCredential(container, credential("reader", { exp: 1 })).item("0", "a").read(), 401);
  });
});

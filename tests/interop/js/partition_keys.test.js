"use strict";
// Several ranges as one container (S2, S36, S40), key lengths (S17, S18), and keys of two and three levels.

const assert = require("node:assert/strict");
const { before, test } = require("node:test");
const { count, key, missing, overBoth, refused } = require("./support");

const range = (response) => response.headers["x-ms-documentdb-partitionkeyrangeid"];

overBoth("partition keys", (world) => {
  for (const version of [1, 2]) {
    test(`S2 S36 S40: version ${version} uses every range and finds every item`, async () => {
      const container = await world.make(key("/pk", version), { throughput: 18000 });
      const created = await Promise.all(count(60).map((n) => container.items.create({ id: "x", pk: `key ${n}`, n })));
      assert.deepEqual([...new Set(created.map(range))].sort(), ["0", "1", "2"]);
      for (const n of count(60)) {
        const read = await container.item("x", `key ${n}`).read();
        assert.equal(read.resource.n, n);
        assert.equal(range(read), range(created[n]));
      }
    });
  }

  test("S17: large keys have 2,048 bytes and differ beyond the 101st", async () => {
    const container = await world.make("/pk");
    await container.items.create({ id: "x", pk: "k".repeat(2048) });
    await refused(container.items.create({ id: "x", pk: "k".repeat(2049) }), 400);
    for (const end of ["a", "b"]) await container.items.create({ id: "x", pk: "k".repeat(101) + end });
  });

  test("S18: small keys differ in the first 100 characters", async () => {
    const container = await world.make(key("/pk", 1));
    await container.items.create({ id: "x", pk: "k".repeat(100) + "a" });
    await refused(container.items.create({ id: "x", pk: "k".repeat(100) + "b" }), 409);
  });
});

overBoth("hierarchical keys", (world) => {
  let two, three;
  before(async () => {
    two = await world.make(["/tenant", "/user"]);
    three = await world.make(["/tenant", "/user", "/session"], { throughput: 12000 });
  });

  test("item operations under two levels", async () => {
    await two.items.create({ id: "x", tenant: "t", user: "u", n: 1 });
    const item = two.item("x", ["t", "u"]);
    assert.equal((await item.read()).resource.n, 1);
    await item.replace({ id: "x", tenant: "t", user: "u", n: 2 });
    await two.items.upsert({ id: "x", tenant: "t", user: "u", n: 3 });
    assert.equal((await item.read()).resource.n, 3);
    await item.delete();
    await missing(item);
  });

  for (const levels of [["t", "u", "s"], ["t", 1, true], ["", "", ""], ["日本", "😀", -0.5], ["t", null, "s"], [null, null, null]]) {
    test(`three levels: ${JSON.stringify(levels)}`, async () => {
      const [tenant, user, session] = levels;
      await three.items.create({ id: "levels", tenant, user, session });
      assert.equal((await three.item("levels", levels).read()).resource.id, "levels");
      await refused(three.items.create({ id: "levels", tenant, user, session }), 409);
      await three.item("levels", levels).delete();
      await missing(three.item("levels", levels));
    });
  }

  test("a missing level is a separate key, different from null", async () => {
    await two.items.create({ id: "absent", tenant: "t" });
    assert.equal((await two.item("absent", ["t", {}]).read()).resource.id, "absent");
    assert.equal((await two.item("absent", ["t", undefined]).read()).resource.id, "absent");
    await missing(two.item("absent", ["t", null]));
  });

  test("all levels missing", async () => {
    await two.items.create({ id: "nothing" });
    assert.equal((await two.item("nothing").read()).resource.id, "nothing");
  });

  test("a point read needs every level: 400/1001", async () => {
    await three.items.create({ id: "whole", tenant: "t", user: "u", session: "s" });
    await refused(three.item("whole", ["t", "u"]).read(), 400, 1001);
    await refused(three.item("whole", ["t"]).delete(), 400, 1001);
  });

  test("a key that does not match the body is 400/1001", async () => {
    await two.items.create({ id: "agree", tenant: "t", user: "u" });
    await refused(two.item("agree", ["t", "u"]).replace({ id: "agree", tenant: "t", user: "other" }), 400, 1001);
  });
});

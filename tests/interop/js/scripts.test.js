"use strict";
// Stored procedures, triggers and user-defined functions: S114 to S118, S120; the scripts are in PLEIAD_SCRIPTS.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { before, test } = require("node:test");
const { TriggerOperation, TriggerType } = require("@azure/cosmos");
const { count, missing, overBoth, refused } = require("./support");

const source = (name) => fs.readFileSync(path.join(process.env.PLEIAD_SCRIPTS, `${name}.js`), "utf8");

overBoth("scripts", (world) => {
  let container;
  before(async () => {
    container = await world.make("/pk");
  });

  const store = async (name, body = source(name), target = container) => {
    const { storedProcedure } = await target.scripts.storedProcedures.create({ id: name, body });
    return (key, ...parameters) => storedProcedure.execute(key, parameters, { enableScriptLogging: true });
  };

  test("scripts can be created, read, replaced and deleted", async () => {
    const { storedProcedures, triggers, userDefinedFunctions } = container.scripts;
    const { resource } = await storedProcedures.create({ id: "life", body: () => getContext().getResponse().setBody(1) });
    await refused(storedProcedures.create({ id: "life", body: "function () {}" }), 409);
    const one = container.scripts.storedProcedure("life");
    assert.equal((await one.read()).resource._rid, resource._rid);
    assert.equal((await one.execute("a", [])).resource, 1);
    await one.replace({ id: "life", body: "function () { __.response.setBody(2) }" });
    assert.equal((await one.execute("a", [])).resource, 2);
    const { resources } = await storedProcedures.query("SELECT VALUE r.id FROM root r WHERE r.id = 'life'").fetchAll();
    assert.deepEqual(resources, ["life"]);
    await one.delete();
    assert.deepEqual((await storedProcedures.readAll().fetchAll()).resources, []);

    const definition = { id: "t", body: "function () {}", triggerType: TriggerType.Post, triggerOperation: TriggerOperation.All };
    const { trigger } = await triggers.create(definition);
    assert.equal((await trigger.read()).resource.triggerType, TriggerType.Post);
    await trigger.delete();
    const { userDefinedFunction } = await userDefinedFunctions.create({ id: "u", body: "x => x" });
    await userDefinedFunction.delete();
    assert.deepEqual((await userDefinedFunctions.readAll().fetchAll()).resources, []);
  });

  test("S114 S116: a procedure is atomic, within one key", async () => {
    const run = await store("pair", `function (key) {
      __.createDocument(__.getSelfLink(), { id: "1", pk: "a" });
      __.createDocument(__.getSelfLink(), { id: "2", pk: key });
    }`);
    const error = await refused(run("a", "b"), 400);
    assert.match(error.message, /partition keys other than the one/);
    await missing(container.item("1", "a"));
    await run("a", "a");
    assert.equal((await container.item("2", "a").read()).resource.id, "2");
  });

  test("logs and errors", async () => {
    const run = await store("say", "function (x) { console.log('got ' + x); if (x > 1) throw new Error(404, 'none'); __.response.setBody({ x }) }");
    const { resource, headers } = await run("a", 1);
    assert.deepEqual(resource, { x: 1 });
    assert.equal(decodeURIComponent(headers["x-ms-documentdb-script-log-results"]), "got 1");
    assert.match((await refused(run("a", 2), 400, 404)).message, /Error: none/);
  });

  test("bulk import and delete resume", async () => {
    const load = await store("bulkImport");
    const clear = await store("bulkDelete");
    const documents = count(300).map((n) => ({ id: String(n), pk: "bulk", n }));
    let done = 0;
    while (done < documents.length) done += (await load("bulk", documents.slice(done))).resource;
    let result = { continuation: true };
    let deleted = 0;
    while (result.continuation) {
      ({ resource: result } = await clear("bulk", "SELECT * FROM c WHERE c.n < 250"));
      deleted += result.deleted;
    }
    assert.deepEqual([done, deleted], [300, 250]);
  });

  test("S120: samples", async () => {
    const swap = await store("swapItems");
    await container.items.create({ id: "anna", pk: "team", item: "sword" });
    await container.items.create({ id: "ben", pk: "team", item: "shield" });
    assert.equal((await swap("team", "anna", "ben")).resource, true);
    assert.equal((await container.item("anna", "team").read()).resource.item, "shield");
    await refused(swap("team", "anna", "missing"), 400);

    const readings = await world.make("/deviceId");
    const latest = await store("setLatestStateAcrossReadings", undefined, readings);
    for (const n of count(3)) {
      await readings.items.create({ id: `r${n}`, deviceId: "d", metricValue: 100 + n });
      assert.equal((await latest("d", `r${n}`)).resource.latestValue, 100 + n);
    }
    const total = await store("aggregate", undefined, readings);
    assert.deepEqual((await total("d", "metricValue")).resource, { count: 3, sum: 303, mean: 101 });
  });

  test("S118: triggers run in the transaction of the write that names them", async () => {
    const { triggers } = container.scripts;
    await triggers.create({ id: "validateItem", body: source("validateItem"), triggerType: "Pre", triggerOperation: "All" });
    await triggers.create({ id: "updateMetadata", body: source("updateMetadata"), triggerType: "Post", triggerOperation: "Create" });
    const both = { preTriggerInclude: "validateItem", postTriggerInclude: "updateMetadata" };
    await refused(container.items.create({ id: "1", pk: "meta", name: "n" }, both), 400);
    await container.items.create({ id: "_metadata", pk: "meta", createdDocuments: 0, createdNames: "" });
    const { resource } = await container.items.create({ id: "1", pk: "meta", name: "n" }, both);
    assert.ok(resource.timestamp > 0);
    await refused(container.items.create({ id: "2", pk: "meta" }, both), 400);
    assert.equal((await container.item("_metadata", "meta").read()).resource.createdNames, " 1");
  });

  test("functions in queries", async () => {
    const incomes = await world.make("/pk", { throughput: 30000 });
    await incomes.scripts.userDefinedFunctions.create({ id: "tax", body: source("tax") });
    for (const [n, income] of [500, 5000, 50000].entries()) await incomes.items.create({ id: String(n), pk: String(n), income });
    const run = async (text) => (await incomes.items.query(text).fetchAll()).resources;
    assert.deepEqual(await run("SELECT VALUE udf.tax(c.income) FROM c ORDER BY c.income"), [50, 1000, 20000]);
    assert.deepEqual(await run("SELECT VALUE SUM(udf.tax(c.income)) FROM c"), [21050]);
    await refused(incomes.items.query("SELECT VALUE udf.missing(c.income) FROM c").fetchAll(), 400);
  });
});

"use strict";
// Provisioned throughput: offers (S60, S61, S70, S83) and the partitions that they create (S44).

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { overBoth, refused, unique } = require("./support");

const provisioned = async (owner) => (await owner.readOffer()).resource.content.offerThroughput;

overBoth("throughput", (world) => {
  test("S60 S61: provisioned at creation", async () => {
    assert.equal(await provisioned(await world.make("/pk", { throughput: 20000 })), 20000);
  });

  test("S83: 400 is the minimum", async () => {
    assert.equal(await provisioned(await world.make("/pk", { throughput: 400 })), 400);
    await refused(world.make("/pk", { throughput: 300 }), 400);
  });

  for (const [throughput, count] of [[400, 1], [6000, 1], [11000, 2], [30000, 5]]) {
    test(`S44: ${throughput} RU/s has ${count} range(s)`, async () => {
      const container = await world.make("/pk", { throughput });
      const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
      assert.deepEqual(ranges.map(({ id }) => id), [...Array(count).keys()].map(String));
      assert.equal(ranges[0].minInclusive, "");
      assert.equal(ranges.at(-1).maxExclusive, "FF");
      for (let i = 1; i < count; i++) assert.equal(ranges[i].minInclusive, ranges[i - 1].maxExclusive);
      assert.equal((await container.getFeedRanges()).length, count);
    });
  }

  test("S70: the sample container", async () => {
    const container = await world.make("/deviceId", { throughput: 20000 });
    assert.equal(await provisioned(container), 20000);
    assert.equal((await container.getFeedRanges()).length, 4);
  });

  test("replace", async () => {
    const container = await world.make("/pk", { throughput: 400 });
    const { offer, resource } = await container.readOffer();
    resource.content.offerThroughput = 900;
    assert.equal((await offer.replace(resource)).resource.content.offerThroughput, 900);
    assert.equal(await provisioned(container), 900);
    assert.equal((await offer.read()).resource.content.offerThroughput, 900);
  });

  test("replace below the minimum is 400", async () => {
    const container = await world.make("/pk", { throughput: 400 });
    const { offer, resource } = await container.readOffer();
    resource.content.offerThroughput = 100;
    await refused(offer.replace(resource), 400);
    assert.equal(await provisioned(container), 400);
  });

  test("autoscale", async () => {
    const autoUpgradePolicy = { throughputPolicy: { incrementPercent: 10 } };
    const container = await world.make("/pk", { maxThroughput: 5000, autoUpgradePolicy });
    const { resource } = await container.readOffer();
    assert.equal(resource.content.offerAutopilotSettings.maxThroughput, 5000);
    assert.deepEqual(resource.content.offerAutopilotSettings.autoUpgradePolicy, autoUpgradePolicy);
  });

  test("a manual offer has no autoscale settings", async () => {
    const container = await world.make("/pk", { throughput: 400 });
    assert.ok(!("offerAutopilotSettings" in (await container.readOffer()).resource.content));
  });

  test("all offers can be listed", async () => {
    const container = await world.make("/pk", { throughput: 700 });
    const { resource } = await container.readOffer();
    const { resources } = await world.client.offers.readAll().fetchAll();
    assert.ok(resources.some(({ id }) => id === resource.id));
  });

  test("a database may have throughput; a container with shared throughput has no offer", async () => {
    const { database } = await world.client.databases.create({ id: unique("shared"), throughput: 1000 });
    assert.equal(await provisioned(database), 1000);
    const { container } = await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
    assert.equal((await container.readOffer()).resource, undefined);
    await database.delete();
  });
});

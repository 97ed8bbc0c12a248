"use strict";
// Client-side encryption: the SDK encrypts; the server stores keys that it cannot unwrap and values that it cannot
// read.

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const { test } = require("node:test");
const {
  ChangeFeedStartFrom,
  CosmosEncryptedNumberType,
  EncryptionAlgorithm,
  EncryptionKeyResolverName,
  EncryptionQueryBuilder,
  EncryptionType,
  KeyEncryptionAlgorithm,
} = require("@azure/cosmos");
const { split } = require("./management");
const { key, overBoth, plain, refused, unique } = require("./support");

const AEAD = EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256;
const PERSON = { id: "1", pk: "a", name: "Ada", ssn: "123-45-6789", age: 36, address: { city: "London", rooms: [1, 2] } };

/** A vault with one key pair; only it can decrypt what is stored. */
class Vault {
  encryptionKeyResolverName = EncryptionKeyResolverName.AzureKeyVault;
  #pair = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });

  async wrapKey(_id, _algorithm, unwrapped) {
    return crypto.publicEncrypt({ key: this.#pair.publicKey, oaepHash: "sha1" }, unwrapped);
  }

  async unwrapKey(_id, _algorithm, wrapped) {
    return crypto.privateDecrypt({ key: this.#pair.privateKey, oaepHash: "sha1" }, wrapped);
  }
}

const wrappedBy = (version) => ({
  type: EncryptionKeyResolverName.AzureKeyVault,
  name: "kek",
  value: `https://vault.example/keys/kek/${version}`,
  algorithm: KeyEncryptionAlgorithm.RSA_OAEP,
});
const path = (path, encryptionType) => ({
  path,
  clientEncryptionKeyId: "cek",
  encryptionType,
  encryptionAlgorithm: AEAD,
});
const POLICY = {
  policyFormatVersion: 1,
  includedPaths: [
    path("/ssn", EncryptionType.DETERMINISTIC),
    path("/age", EncryptionType.DETERMINISTIC),
    path("/address", EncryptionType.RANDOMIZED),
  ],
};

overBoth("client-side encryption", (world) => {
  const vault = new Vault();
  const trusted = () => world.connect({ clientEncryptionOptions: { keyEncryptionKeyResolver: vault } });

  /** A database with its key, and a container with two partitions whose policy names the key. */
  async function encrypted(clientEncryptionPolicy = POLICY) {
    const { database } = await trusted().databases.create({ id: unique("enc") });
    await database.createClientEncryptionKey("cek", AEAD, wrappedBy(1));
    const more = { clientEncryptionPolicy, throughput: 12000 };
    const { container } = await database.containers.create({ id: unique("c"), partitionKey: key("/pk"), ...more });
    return { database, container, untrusted: world.client.database(database.id).container(container.id) };
  }

  test("only clients with the key can read the encrypted paths", async () => {
    const { database, container, untrusted } = await encrypted();
    const { resource: created } = await container.items.create(PERSON);
    assert.deepEqual(plain(created), PERSON);
    assert.deepEqual(plain((await container.item("1", "a").read()).resource), PERSON);
    const { resource: stored } = await untrusted.item("1", "a").read();
    assert.equal(stored.name, "Ada");
    for (const name of ["ssn", "age"]) assert.match(stored[name], /^[A-Za-z0-9+/]+=*$/);
    assert.doesNotMatch(JSON.stringify(stored), /London|123-45/);
    await database.delete();
  });

  test("deterministic values can be searched for, and items replaced and patched", async () => {
    const { database, container } = await encrypted();
    await container.items.create(PERSON);
    await container.items.create({ ...PERSON, id: "2", pk: "b", ssn: "987-65-4321" });
    await split(container);
    const query = new EncryptionQueryBuilder("SELECT * FROM c WHERE c.ssn = @ssn AND c.age = @age");
    query.addParameter("@ssn", PERSON.ssn, "/ssn");
    query.addParameter("@age", { value: 36, numberType: CosmosEncryptedNumberType.Integer }, "/age");
    const found = await (await container.items.getEncryptionQueryIterator(query)).fetchAll();
    assert.deepEqual(found.resources.map(plain), [PERSON]);
    await container.item("1", "a").replace({ ...PERSON, age: 37 });
    await container.item("1", "a").patch([{ op: "replace", path: "/ssn", value: "000-00-0000" }]);
    assert.deepEqual(plain((await container.item("1", "a").read()).resource), { ...PERSON, age: 37, ssn: "000-00-0000" });
    const all = await container.items.readAll().fetchAll();
    assert.deepEqual(all.resources.map((item) => item.ssn).sort(), ["000-00-0000", "987-65-4321"]);
    await database.delete();
  });

  test("batch, bulk and the change feed encrypt and decrypt as well", async () => {
    const { database, container } = await encrypted();
    const operation = (id) => ({ operationType: "Create", resourceBody: { ...PERSON, id } });
    await container.items.batch([operation("1"), operation("2")], "a");
    await container.items.executeBulkOperations([{ ...operation("3"), partitionKey: "a" }]);
    const seen = [];
    const changes = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    for await (const page of changes.getAsyncIterator()) {
      if (page.statusCode === 304) break;
      seen.push(...page.result.map(({ id, ssn }) => [id, ssn]));
    }
    assert.deepEqual(seen.sort(), ["1", "2", "3"].map((id) => [id, PERSON.ssn]));
    await database.delete();
  });

  test("id and partition key can be encrypted by a policy of version 2", async () => {
    const includedPaths = ["/id", "/pk"].map((name) => path(name, EncryptionType.DETERMINISTIC));
    const { database, container, untrusted } = await encrypted({ policyFormatVersion: 2, includedPaths });
    await container.items.create(PERSON);
    assert.deepEqual(plain((await container.item("1", "a").read()).resource), PERSON);
    const [stored] = (await untrusted.items.readAll().fetchAll()).resources;
    assert.notEqual(stored.id, "1");
    assert.notEqual(stored.pk, "a");
    await database.delete();
  });

  test("a client with a stale container gets an error once, and continues", async () => {
    const { database, container } = await encrypted();
    await container.items.create(PERSON);
    const { resource: definition } = await container.read();
    await container.delete();
    const definitionAgain = { id: definition.id, partitionKey: key("/pk"), clientEncryptionPolicy: POLICY };
    await trusted().database(database.id).containers.create(definitionAgain);
    await assert.rejects(container.items.create(PERSON), /possible mismatch in Client Encryption Policy.*it was created anew/);
    await container.items.create(PERSON);
    await database.delete();
  });

  test("a key can be rewrapped, and a policy cannot change", async () => {
    const { database, container } = await encrypted();
    await container.items.create(PERSON);
    const { clientEncryptionKeyProperties: rewrapped } = await database.rewrapClientEncryptionKey("cek", wrappedBy(2));
    assert.deepEqual(rewrapped.encryptionKeyWrapMetadata, wrappedBy(2));
    const fresh = trusted().database(database.id).container(container.id);
    assert.deepEqual(plain((await fresh.item("1", "a").read()).resource), PERSON);
    const { resource } = await container.read();
    assert.deepEqual(resource.clientEncryptionPolicy, POLICY);
    await refused(container.replace({ ...resource, clientEncryptionPolicy: { ...POLICY, includedPaths: [] } }), 400);
    await database.delete();
  });
});

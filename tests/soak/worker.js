"use strict";
// One client of the soak test: writes, reads, queries and follows the change feed with the JavaScript SDK until its
// input ends.
//
// worker.py does the same with the Python SDK; its header lists the invariants.

const { ChangeFeedStartFrom, CosmosClient, StatusCodes } = require("@azure/cosmos");

const NAME = "js";
const [WRITERS, KEYS, SLOTS, LIVE] = [2, 40, 12, 500];
const TEXT = "x".repeat(700);
const IS_KILLED = process.env.SOAK_KILLED === "1";
const RETRY_MS = 50;
const EMPTY_PAGES_MIN = 3; // number of consecutive empty pages of the change feed

const items = new Map(); // by id: {id, pk, slot, rank, acknowledged, requested, deleting}
const differences = [];
const counts = {};
const longest_ms = {};
let stopping = false;
let writing = true;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const randomBelow = (end) => Math.floor(Math.random() * end);

function differs(text) {
  differences.push(text);
  if (differences.length > 20) stopping = true;
}

/** The items that must exist, with their acknowledged versions. */
function acknowledgedItems(predicate = () => true) {
  const found = [...items.values()].filter((item) => item.acknowledged && !item.deleting && predicate(item));
  return new Map(found.map((item) => [item.id, item.acknowledged]));
}

/** Sends the request until a server answers: once, unless servers are killed. */
async function timed(what, request) {
  for (;;) {
    const started = performance.now();
    try {
      return await request();
    } catch (error) {
      if (!IS_KILLED || typeof error.code === "number") throw error;
      counts.retries = (counts.retries ?? 0) + 1;
      await pause(RETRY_MS);
    } finally {
      longest_ms[what] = Math.max(longest_ms[what] ?? 0, Math.round(performance.now() - started));
      counts[what] = (counts[what] ?? 0) + 1;
    }
  }
}

/** A separate client, which learns of every split by itself. */
function connect() {
  const client = new CosmosClient({ endpoint: process.env.PLEIAD_ENDPOINT, key: process.env.PLEIAD_KEY });
  return client.database("soak").container("items");
}

const body = ({ id, pk, slot, rank }, n) => ({ id, pk, slot, rank, n, text: TEXT });

/** Writes under keys that no other writer uses, so that the order of their changes is known. */
async function write(number) {
  const [container, ownItems] = [connect(), []];
  for (let version = 1; !stopping; version++) {
    if (ownItems.length < LIVE || Math.random() < 0.1) ownItems.push(await create(container, number, version));
    else if (Math.random() < 0.8) await replace(container, ownItems[randomBelow(ownItems.length)], version);
    else await remove(container, ownItems.splice(randomBelow(ownItems.length), 1)[0]);
  }
}

async function create(container, number, version) {
  const properties = { pk: `${NAME}-${number}-${randomBelow(KEYS)}`, slot: `${NAME}-${randomBelow(SLOTS)}`, rank: randomBelow(1000) };
  const item = { id: `${NAME}-${number}-${version}`, ...properties, acknowledged: 0, requested: version, deleting: false };
  items.set(item.id, item);
  try {
    await timed("create", () => container.items.create(body(item, version)));
  } catch (error) {
    if (error.code !== 409) throw error;
    // The first attempt got no response, but was executed.
    if (!IS_KILLED) differs(`create ${item.id}: it exists already`);
  }
  item.acknowledged = version;
  return item;
}

async function replace(container, item, version) {
  item.requested = version;
  if (Math.random() < 0.5) {
    await timed("replace", () => container.item(item.id, item.pk).replace(body(item, version)));
  } else {
    await timed("upsert", () => container.items.upsert(body(item, version)));
  }
  item.acknowledged = version;
}

async function remove(container, item) {
  item.deleting = true;
  try {
    await timed("delete", () => container.item(item.id, item.pk).delete());
  } catch (error) {
    if (error.code !== 404) throw error;
    if (!IS_KILLED) differs(`delete ${item.id}: it was acknowledged and does not exist`);
  }
}

async function read() {
  const container = connect();
  while (!stopping) {
    const item = [...items.values()][randomBelow(items.size)];
    if (!item?.acknowledged || item.deleting) {
      await pause(1);
      continue;
    }
    const acknowledged = item.acknowledged;
    const { resource } = await timed("read", () => container.item(item.id, item.pk).read());
    if (!resource && !item.deleting) differs(`read ${item.id}: version ${acknowledged} was acknowledged and does not exist`);
    if (resource && !(acknowledged <= resource.n && resource.n <= item.requested)) {
      differs(`read ${item.id}: version ${resource.n}, but ${acknowledged} was acknowledged and ${item.requested} requested`);
    }
  }
}

async function query() {
  const container = connect();
  for (let turn = 1; !stopping; turn++) {
    const slot = `${NAME}-${turn % SLOTS}`;
    const ordered = turn % 2 ? " ORDER BY c.rank" : "";
    const before = acknowledgedItems((item) => item.slot === slot);
    const text = { query: `SELECT c.id, c.n, c.rank FROM c WHERE c.slot = @slot${ordered}`, parameters: [{ name: "@slot", value: slot }] };
    const rows = await timed("whole query", () => runQuery(container, text));
    compare(`query${ordered} of ${slot}`, before, rows);
    if (ordered && rows.some((row, at) => at > 0 && row.rank < rows[at - 1].rank)) differs(`query of ${slot}: not in order`);
  }
}

/** Uses small pages, so that partitions change between them. */
async function runQuery(container, text) {
  const [iterator, rows] = [container.items.query(text, { maxItemCount: 7 }), []];
  while (iterator.hasMoreResults()) rows.push(...((await iterator.fetchNext()).resources ?? []));
  return rows;
}

function compare(what, before, rows) {
  const found = new Map(rows.map((row) => [row.id, row.n]));
  if (found.size !== rows.length) differs(`${what}: ${rows.length - found.size} items twice`);
  for (const [id, version] of before) {
    const [item, now] = [items.get(id), found.get(id)];
    if (now === undefined && !item.deleting) differs(`${what}: ${id} is missing, version ${version} was acknowledged`);
    if (now !== undefined && !(version <= now && now <= item.requested)) {
      differs(`${what}: ${id} in version ${now}, ${version} was acknowledged`);
    }
  }
}

/** Reads the change feed of the container with one iterator; after an error, a new one resumes from the last continuation. */
async function follow() {
  const [container, byItem] = [connect(), new Map()];
  let from = ChangeFeedStartFrom.Beginning();
  let [iterator, empty] = [undefined, 0];
  while (writing || empty < EMPTY_PAGES_MIN) {
    const page = await timed("page of changes", () => {
      iterator ??= container.items.getChangeFeedIterator({ changeFeedStartFrom: from, maxItemCount: 50 });
      return iterator.readNext().catch((error) => {
        iterator = undefined;
        throw error;
      });
    });
    from = ChangeFeedStartFrom.Continuation(page.continuationToken);
    for (const change of page.result ?? []) checkChange(change, byItem);
    empty = page.statusCode === StatusCodes.NotModified && !writing ? empty + 1 : 0;
    if (page.statusCode === StatusCodes.NotModified) await pause(5);
  }
  for (const [id, version] of acknowledgedItems()) {
    if (byItem.get(id) !== version) {
      differs(`change feed: ${id} was last seen in version ${byItem.get(id)}, it is ${version}`);
    }
  }
}

/**
 * When a range is split twice between two reads, this SDK reads one of the parts from two positions, and returns its changes twice.
 * All changes arrive, and no item returns to an older version: more cannot be required. worker.py is stricter.
 */
function checkChange({ id, n }, byItem) {
  if (!id.startsWith(NAME)) return;
  const seen = byItem.get(id) ?? 0;
  if (n < seen) differs(`change feed: ${id} in version ${n}, after ${seen}`);
  if (n === seen) counts.repeats = (counts.repeats ?? 0) + 1;
  byItem.set(id, n);
}

/** After all actors have finished: all acknowledged items exist, and no others. */
async function checkAll() {
  const all = await timed("list", () => connect().items.readAll({ maxItemCount: 100 }).fetchAll());
  const rows = all.resources.filter((row) => row.id.startsWith(NAME));
  compare("at the end", acknowledgedItems(), rows);
  for (const row of rows) {
    if (items.get(row.id)?.deleting ?? true) differs(`at the end: ${row.id} exists and was deleted`);
  }
}

/** Reports an actor's failure and stops the others. */
const runActor = (what, actor) =>
  actor().catch((error) => {
    differs(`${what}: ${error.name} ${error.code}: ${String(error.message ?? error.body?.message ?? error).slice(0, 600)}`);
    stopping = true;
  });

async function main() {
  process.stdin.on("end", () => (stopping = true)).resume();
  const writers = [...Array(WRITERS).keys()].map((number) => runActor(`writer ${number}`, () => write(number)));
  const others = [runActor("reader", read), runActor("querier", query), runActor("follower", follow)];
  await Promise.all(writers);
  writing = false;
  await Promise.all(others);
  await runActor("at the end", checkAll);
  process.stdout.write(`${JSON.stringify({ sdk: NAME, items: acknowledgedItems().size, counts, longest_ms, differences })}\n`, () => process.exit(0));
}

main();

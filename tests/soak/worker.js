"use strict";
// One client of the soak: writes, reads, queries and follows the change feed through the JavaScript SDK until its input ends.
//
// worker.py does the same with the Python SDK, and says there what is believed and what is compared.

const { ChangeFeedStartFrom, CosmosClient, StatusCodes } = require("@azure/cosmos");

const NAME = "js";
const [WRITERS, KEYS, SLOTS, LIVE] = [2, 40, 12, 500];
const TEXT = "x".repeat(700);
const IS_KILLED = process.env.SOAK_KILLED === "1";
const AWAY_MS = 50;
const SILENT_AFTER = 3; // empty answers of the change feed in a row

const items = new Map(); // what we know: {id, pk, slot, rank, told, tried, leaving}
const differences = [];
const counts = {};
const longest_ms = {};
let stopping = false;
let writing = true;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const below = (end) => Math.floor(Math.random() * end);

function differs(text) {
  differences.push(text);
  if (differences.length > 20) stopping = true;
}

/** The items that are certainly there, and their versions. */
function settled(wanted = () => true) {
  const there = [...items.values()].filter((item) => item.told && !item.leaving && wanted(item));
  return new Map(there.map((item) => [item.id, item.told]));
}

/** Asks until somebody answers: once, unless servers are killed. */
async function timed(what, ask) {
  for (;;) {
    const began = performance.now();
    try {
      return await ask();
    } catch (error) {
      if (!IS_KILLED || typeof error.code === "number") throw error;
      counts.away = (counts.away ?? 0) + 1;
      await pause(AWAY_MS);
    } finally {
      longest_ms[what] = Math.max(longest_ms[what] ?? 0, Math.round(performance.now() - began));
      counts[what] = (counts[what] ?? 0) + 1;
    }
  }
}

/** A client of its own, which hears of every split by itself. */
function connect() {
  const client = new CosmosClient({ endpoint: process.env.PLEIAD_ENDPOINT, key: process.env.PLEIAD_KEY });
  return client.database("soak").container("items");
}

const body = ({ id, pk, slot, rank }, n) => ({ id, pk, slot, rank, n, text: TEXT });

/** Its keys are nobody else's, so that it knows the order of their changes. */
async function write(number) {
  const [container, mine] = [connect(), []];
  for (let version = 1; !stopping; version++) {
    if (mine.length < LIVE || Math.random() < 0.1) mine.push(await create(container, number, version));
    else if (Math.random() < 0.8) await replace(container, mine[below(mine.length)], version);
    else await remove(container, mine.splice(below(mine.length), 1)[0]);
  }
}

async function create(container, number, version) {
  const place = { pk: `${NAME}-${number}-${below(KEYS)}`, slot: `${NAME}-${below(SLOTS)}`, rank: below(1000) };
  const item = { id: `${NAME}-${number}-${version}`, ...place, told: 0, tried: version, leaving: false };
  items.set(item.id, item);
  try {
    await timed("create", () => container.items.create(body(item, version)));
  } catch (error) {
    if (error.code !== 409) throw error;
    // Nobody answered the first time, and yet it was done.
    if (!IS_KILLED) differs(`create ${item.id}: it is there already`);
  }
  item.told = version;
  return item;
}

async function replace(container, item, version) {
  item.tried = version;
  if (Math.random() < 0.5) {
    await timed("replace", () => container.item(item.id, item.pk).replace(body(item, version)));
  } else {
    await timed("upsert", () => container.items.upsert(body(item, version)));
  }
  item.told = version;
}

async function remove(container, item) {
  item.leaving = true;
  try {
    await timed("delete", () => container.item(item.id, item.pk).delete());
  } catch (error) {
    if (error.code !== 404) throw error;
    if (!IS_KILLED) differs(`delete ${item.id}: it was acknowledged and is not there`);
  }
}

async function read() {
  const container = connect();
  while (!stopping) {
    const item = [...items.values()][below(items.size)];
    if (!item?.told || item.leaving) {
      await pause(1);
      continue;
    }
    const told = item.told;
    const { resource } = await timed("read", () => container.item(item.id, item.pk).read());
    if (!resource && !item.leaving) differs(`read ${item.id}: version ${told} was acknowledged and is not there`);
    if (resource && !(told <= resource.n && resource.n <= item.tried)) {
      differs(`read ${item.id}: version ${resource.n}, and ${told} was acknowledged, ${item.tried} asked for`);
    }
  }
}

async function query() {
  const container = connect();
  for (let turn = 1; !stopping; turn++) {
    const slot = `${NAME}-${turn % SLOTS}`;
    const ordered = turn % 2 ? " ORDER BY c.rank" : "";
    const before = settled((item) => item.slot === slot);
    const text = { query: `SELECT c.id, c.n, c.rank FROM c WHERE c.slot = @slot${ordered}`, parameters: [{ name: "@slot", value: slot }] };
    const rows = await timed("whole query", () => walk(container, text));
    compare(`query${ordered} of ${slot}`, before, rows);
    if (ordered && rows.some((row, at) => at > 0 && row.rank < rows[at - 1].rank)) differs(`query of ${slot}: not in order`);
  }
}

/** In small pages, so that partitions change in the middle. */
async function walk(container, text) {
  const [iterator, rows] = [container.items.query(text, { maxItemCount: 7 }), []];
  while (iterator.hasMoreResults()) rows.push(...((await iterator.fetchNext()).resources ?? []));
  return rows;
}

function compare(what, before, rows) {
  const found = new Map(rows.map((row) => [row.id, row.n]));
  if (found.size !== rows.length) differs(`${what}: ${rows.length - found.size} items twice`);
  for (const [id, version] of before) {
    const [item, now] = [items.get(id), found.get(id)];
    if (now === undefined && !item.leaving) differs(`${what}: ${id} is missing, version ${version} was acknowledged`);
    if (now !== undefined && !(version <= now && now <= item.tried)) {
      differs(`${what}: ${id} in version ${now}, ${version} was acknowledged`);
    }
  }
}

/** Reads the change feed of the container with one iterator, and with a new one where that stopped. */
async function follow() {
  const [container, byItem] = [connect(), new Map()];
  let from = ChangeFeedStartFrom.Beginning();
  let [iterator, empty] = [undefined, 0];
  while (writing || empty < SILENT_AFTER) {
    const page = await timed("page of changes", () => {
      iterator ??= container.items.getChangeFeedIterator({ changeFeedStartFrom: from, maxItemCount: 50 });
      return iterator.readNext().catch((error) => {
        iterator = undefined;
        throw error;
      });
    });
    from = ChangeFeedStartFrom.Continuation(page.continuationToken);
    for (const change of page.result ?? []) saw(change, byItem);
    empty = page.statusCode === StatusCodes.NotModified && !writing ? empty + 1 : 0;
    if (page.statusCode === StatusCodes.NotModified) await pause(5);
  }
  for (const [id, version] of settled()) {
    if (byItem.get(id) !== version) {
      differs(`change feed: ${id} was last seen in version ${byItem.get(id)}, it is ${version}`);
    }
  }
}

/**
 * When a range is split twice between two looks at it, this SDK reads one of the parts from two positions, and gives its changes twice.
 * All come, and no item goes back to an older version: that is all that can be asked of it. worker.py is stricter.
 */
function saw({ id, n }, byItem) {
  if (!id.startsWith(NAME)) return;
  const seen = byItem.get(id) ?? 0;
  if (n < seen) differs(`change feed: ${id} in version ${n}, after ${seen}`);
  if (n === seen) counts.repeats = (counts.repeats ?? 0) + 1;
  byItem.set(id, n);
}

/** When everybody is done: each item, and no other. */
async function checkAll() {
  const all = await timed("list", () => connect().items.readAll({ maxItemCount: 100 }).fetchAll());
  const rows = all.resources.filter((row) => row.id.startsWith(NAME));
  compare("at the end", settled(), rows);
  for (const row of rows) {
    if (items.get(row.id)?.leaving ?? true) differs(`at the end: ${row.id} is there and was deleted`);
  }
}

/** An actor's end is nothing to be overlooked. */
const watched = (what, actor) =>
  actor().catch((error) => {
    differs(`${what}: ${error.name} ${error.code}: ${String(error.message ?? error.body?.message ?? error).slice(0, 600)}`);
    stopping = true;
  });

async function main() {
  process.stdin.on("end", () => (stopping = true)).resume();
  const writers = [...Array(WRITERS).keys()].map((number) => watched(`writer ${number}`, () => write(number)));
  const others = [watched("reader", read), watched("querier", query), watched("follower", follow)];
  await Promise.all(writers);
  writing = false;
  await Promise.all(others);
  await watched("at the end", checkAll);
  process.stdout.write(`${JSON.stringify({ sdk: NAME, items: settled().size, counts, longest_ms, differences })}\n`, () => process.exit(0));
}

main();

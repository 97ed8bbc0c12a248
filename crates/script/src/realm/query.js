// JavaScript query API: filter, map, pluck, flatten, sortBy, sortByDescending, unwind, chain … value.
//
// Guarantees: the longest prefix of stages that `host.translate` can translate becomes one SQL query; the other stages
// run here, over the rows of that query, with the same result. Undefined rows are dropped, as SELECT VALUE does.
(function (host, api) {
    "use strict";
    const { collection, context, ask, settle, bad } = api;
    const { isArray } = Array;
    const { apply } = Reflect;
    const { toString } = Function.prototype;

    const source = (fn) => (fn === undefined ? undefined : apply(toString, fn, []));
    const defined = (rows) => rows.filter((row) => row !== undefined);

    const RANKS = { undefined: 0, null: 1, boolean: 2, number: 3, string: 4, array: 5, object: 6 };
    const rank = (value) => RANKS[value === null ? "null" : isArray(value) ? "array" : typeof value];

    function compare(a, b) {
        const byType = rank(a) - rank(b);
        if (byType !== 0 || rank(a) > RANKS.string) return byType;
        return a < b ? -1 : a > b ? 1 : 0;
    }

    function sort(rows, key, direction) {
        const keyed = rows.map((row) => ({ row, key: key(row) })).filter((entry) => entry.key !== undefined);
        keyed.sort((a, b) => direction * compare(a.key, b.key));
        return keyed.map((entry) => entry.row);
    }

    function unwound(rows, selector, result) {
        const made = [];
        for (const row of rows) {
            const inner = selector(row);
            if (!isArray(inner)) continue;
            for (const item of inner) made.push(result === undefined ? item : result(row, item));
        }
        return defined(made);
    }

    const HERE = {
        filter: (rows, stage) => rows.filter((row) => stage.first(row)),
        map: (rows, stage) => defined(rows.map((row) => stage.first(row))),
        pluck: (rows, stage) => defined(rows.map((row) => (row === null || row === undefined ? undefined : row[stage.name]))),
        flatten: (rows, stage) => rows.flat(stage.shallow ? 1 : Infinity),
        sortBy: (rows, stage) => sort(rows, stage.first, 1),
        sortByDescending: (rows, stage) => sort(rows, stage.first, -1),
        unwind: (rows, stage) => unwound(rows, stage.first, stage.second),
    };
    const needsAll = (stage) => stage.verb === "sortBy" || stage.verb === "sortByDescending";

    function toResponse() {
        const { getResponse } = context();
        if (getResponse === undefined) throw bad("Where there is no response, as in a pre-trigger, a callback is needed.");
        return (error, feed) => {
            if (error) throw error;
            getResponse().setBody(feed);
        };
    }

    function execute(stages, options, given) {
        const callback = given === undefined ? toResponse() : given;
        const [sql, taken] = host.translate(stages.map((s) => [s.verb, s.name || source(s.first), source(s.second)]));
        const rest = stages.slice(taken);
        const finish = (rows) => rest.reduce((done, stage) => HERE[stage.verb](done, stage), rows);
        const body = JSON.stringify({ query: sql });
        const link = host.fact("selfLink");
        if (!rest.some(needsAll)) {
            return ask("query", link, body, options, callback, (rows, page) => callback(undefined, finish(rows), page));
        }
        // A sort needs every row, so all pages are read first and the result has no continuation.
        const all = [];
        const gather = (rows, page) => {
            for (const row of rows) all.push(row);
            if (page.continuation === undefined) return void callback(undefined, finish(all), {});
            const next = { ...options, continuation: page.continuation };
            if (!ask("query", link, body, next, callback, gather)) {
                throw bad("There was no time left to read what is to be sorted.");
            }
        };
        return ask("query", link, body, options, callback, gather);
    }

    function predicate(value, name, args) {
        if (typeof value !== "function") throw bad(`"${name}" needs a function.`);
        if (args !== undefined && value.length !== args) throw bad(`The function given to "${name}" has ${args} argument(s).`);
        return value;
    }

    // Parses the arguments of each verb; the remaining ones are options and callback.
    const VERBS = {
        filter: (args) => ({ first: predicate(args.shift(), "filter") }),
        map: (args) => ({ first: predicate(args.shift(), "map") }),
        sortBy: (args) => ({ first: predicate(args.shift(), "sortBy") }),
        sortByDescending: (args) => ({ first: predicate(args.shift(), "sortByDescending") }),
        flatten: (args) => ({ shallow: typeof args[0] === "boolean" ? args.shift() : false }),
        pluck: (args) => {
            const name = args.shift();
            if (typeof name !== "string" || name === "") throw bad("A property name is a string that is not empty.");
            return { name };
        },
        unwind: (args) => {
            const first = predicate(args.shift(), "unwind", 1);
            const second = typeof args[0] === "function" && args[0].length === 2 ? args.shift() : undefined;
            return { first, second };
        },
    };

    function alone(verb) {
        return function (...args) {
            const stage = { verb, ...VERBS[verb](args) };
            const { options, callback } = settle(args[0], args[1]);
            return { isAccepted: execute([stage], options, callback) };
        };
    }

    function chained(verb) {
        return function (...args) {
            const stage = { verb, ...VERBS[verb](args) };
            if (args.some((arg) => arg !== undefined)) throw bad('In a chain, options and callback belong to "value".');
            return link([...this.stages(), stage]);
        };
    }

    // value(options, callback), in either order.
    function value(first, second) {
        const swapped = typeof first === "function" && typeof second === "object";
        const { options, callback } = swapped ? settle(second, first) : settle(first, second);
        return { isAccepted: execute(this.stages(), options, callback) };
    }

    const chain = { value };
    for (const verb of Object.keys(VERBS)) {
        collection[verb] = alone(verb);
        chain[verb] = chained(verb);
    }

    function link(stages) {
        const made = Object.create(chain);
        made.isAccepted = true;
        made.stages = () => stages;
        return made;
    }

    collection.chain = () => link([]);
    // Functions that run here see their closure, so there is nothing to pass on.
    collection.proxy = function proxy() { return Object.create(this); };
    collection.spatial = {};
    for (const name of ["distance", "intersects", "isValid", "isValidDetailed", "within"]) {
        collection.spatial[name] = () => { throw bad(host.refused(`spatial.${name}`)); };
    }
    api.reachable.push(chain);
})

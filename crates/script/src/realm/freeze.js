// Freezes a realm that is shared by many calls: only its global object can be changed, and that is reset.
//
// Guarantees: after `tidy()` has returned true, a script finds no state of earlier calls.
//
//   globalThis  { what the script left: removed }          undefined, NaN, Infinity stay: they are read-only
//       │ prototype
//   builtins    { Object, Array, …, getContext, __ }       frozen, and everything that can be reached from it
(function (keep) {
    "use strict";
    // The name `globalThis` is moved with the others, so its value is saved first.
    const scope = globalThis;
    const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf, isExtensible, setPrototypeOf } = Object;
    const { ownKeys, deleteProperty } = Reflect;

    const builtins = {};
    for (const key of ownKeys(scope)) {
        const descriptor = getOwnPropertyDescriptor(scope, key);
        if (!descriptor.configurable) continue;
        defineProperty(builtins, key, descriptor);
        delete scope[key];
    }
    setPrototypeOf(scope, builtins);
    const clean = ownKeys(scope).length;

    const seen = new Set();
    function visit(value) {
        const waiting = [value];
        while (waiting.length > 0) {
            const next = waiting.pop();
            if ((typeof next !== "object" && typeof next !== "function") || next === null) continue;
            if (next === scope || seen.has(next)) continue;
            seen.add(next);
            waiting.push(getPrototypeOf(next));
            for (const key of ownKeys(next)) {
                const { value, get, set } = getOwnPropertyDescriptor(next, key);
                waiting.push(value, get, set);
            }
        }
    }

    // No global name reaches these prototypes; syntax and methods do.
    function* numbers() { yield 1; }
    const async = async function () {};
    const asyncNumbers = async function* () {};
    const hidden = [
        numbers, numbers(), async, asyncNumbers, asyncNumbers(), () => {}, [][Symbol.iterator](), ""[Symbol.iterator](),
        new Map().entries(), new Set().values(), "".matchAll(/x/g), numbers().map((x) => x),
        Iterator.from({ next() { return { done: true }; } }), (function () { "use strict"; return arguments; })(),
    ];
    if (typeof Iterator.concat === "function") hidden.push(Iterator.concat([]));
    visit(builtins);
    hidden.forEach(visit);
    visit(keep);

    // A frozen prototype would forbid `error.name = …` and `object.toString = …` on all objects that inherit from it.
    // So these properties become accessors whose setter defines the property on the target object.
    function enable(prototype, key) {
        const { value, writable, configurable } = getOwnPropertyDescriptor(prototype, key) || {};
        if (!writable || !configurable) return;
        defineProperty(prototype, key, {
            get() { return value; },
            set(next) {
                if (this === prototype) throw new TypeError(`"${String(key)}" is read-only.`);
                defineProperty(this, key, { value: next, writable: true, enumerable: true, configurable: true });
            },
            enumerable: false,
            configurable: false,
        });
    }
    const errors = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];
    for (const { prototype } of [Object, ...errors]) ownKeys(prototype).forEach((key) => enable(prototype, key));
    for (const { prototype } of [Array, Function, Date, String, Number, Boolean, RegExp, Map, Set, Promise]) {
        ["toString", "valueOf", "toJSON", "toLocaleString"].forEach((key) => enable(prototype, key));
    }
    enable(Function.prototype, "constructor");
    for (const object of seen) {
        for (const key of ownKeys(object)) {
            const { get, set } = getOwnPropertyDescriptor(object, key);
            if (get !== undefined) freeze(get);
            if (set !== undefined) freeze(set);
        }
        freeze(object);
    }

    function sweep(keys) {
        for (const key of keys) deleteProperty(scope, key);
        return ownKeys(scope).length === clean;
    }

    return function tidy() {
        const keys = ownKeys(scope);
        return (keys.length === clean || sweep(keys)) && getPrototypeOf(scope) === builtins && isExtensible(scope);
    };
})

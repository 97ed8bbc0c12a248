// Built-ins: time, randomness and errors, as scripts of the service expect them.
//
// Guarantees: time and randomness come from `host` only. `new Error(number, message)` stores both arguments.
(function (host) {
    "use strict";
    const { construct, ownKeys } = Reflect;
    const { defineProperty, getOwnPropertyDescriptor, setPrototypeOf } = Object;

    // Replaces a native constructor with `wrapper`; instances and their prototype are unchanged.
    function replace(native, wrapper, hidden) {
        for (const key of ownKeys(native)) {
            if (key === "prototype" || key === "length" || hidden.includes(key)) continue;
            defineProperty(wrapper, key, getOwnPropertyDescriptor(native, key));
        }
        defineProperty(wrapper, "prototype", { value: native.prototype, writable: false, configurable: false });
        defineProperty(native.prototype, "constructor", { value: wrapper, writable: true, configurable: true });
        defineProperty(globalThis, native.name, { value: wrapper, writable: true, configurable: true });
    }

    const NativeError = Error;
    function NumberedError(message, second) {
        const target = new.target || NumberedError;
        if (typeof message !== "number" || typeof second !== "string") {
            return construct(NativeError, arguments, target);
        }
        const error = construct(NativeError, [second], target);
        error.number = message;
        return error;
    }
    // The values of the two stack hooks are not properties of any object, so a reset could not remove them.
    replace(NativeError, NumberedError, ["prepareStackTrace", "stackTraceLimit"]);
    for (const kind of [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError]) {
        setPrototypeOf(kind, NumberedError);
    }

    const NativeDate = Date;
    function HostDate() {
        if (!new.target) return new NativeDate(host.now()).toString();
        return construct(NativeDate, arguments.length > 0 ? arguments : [host.now()], new.target);
    }
    replace(NativeDate, HostDate, ["now"]);
    const plain = { writable: true, configurable: true, enumerable: false };
    defineProperty(HostDate, "now", { value: function now() { return host.now(); }, ...plain });
    defineProperty(Math, "random", { value: function random() { return host.random(); }, ...plain });

    // A callback that runs after its call has ended could reach the next call.
    delete globalThis.WeakRef;
    delete globalThis.FinalizationRegistry;
    // Some native loops do not check the clock. They may only run over lists that are known to be short; without Proxy,
    // a length that is a data property is reliable.
    delete globalThis.Proxy;
    const LENGTH_MAX = 2 ** 24;
    const COMPARISONS_MAX = 2 ** 32;
    const { apply } = Reflect;
    const { isView } = ArrayBuffer;

    function measured(list) {
        if ((typeof list !== "object" && typeof list !== "function") || list === null || isView(list)) return;
        const length = getOwnPropertyDescriptor(list, "length");
        const isShort = length === undefined ? !("length" in list) : typeof length.value === "number" && length.value <= LENGTH_MAX;
        if (!isShort) throw new RangeError("The array is too long.");
    }

    function guard(owner, name, check) {
        const native = owner[name];
        const guarded = { [name](...args) { check(this, args); return apply(native, this, args); } }[name];
        defineProperty(guarded, "length", { value: native.length, configurable: true });
        defineProperty(owner, name, { value: guarded, ...plain });
    }

    const alone = (list) => measured(list);
    for (const name of ["copyWithin", "join", "reverse", "shift", "sort", "splice", "toLocaleString", "unshift"]) {
        guard(Array.prototype, name, alone);
    }
    guard(Array.prototype, "concat", (list, more) => { measured(list); more.forEach(measured); });
    guard(String, "raw", (_, [strings]) => { if (strings) measured(strings.raw); });
    for (const name of ["indexOf", "lastIndexOf", "includes", "split", "replace", "replaceAll"]) {
        guard(String.prototype, name, (text, [part]) => {
            const isLong = typeof part === "string" && String(text).length * part.length > COMPARISONS_MAX;
            if (isLong) throw new RangeError("The text is too long.");
        });
    }

    // These descend into nested arrays, so they are implemented in JavaScript, whose loops do check the clock.
    function flatten(into, list, depth) {
        for (let at = 0; at < list.length; at++) {
            if (!(at in list)) continue;
            if (depth > 0 && Array.isArray(list[at])) flatten(into, list[at], depth - 1);
            else into.push(list[at]);
        }
        return into;
    }
    const rewritten = {
        flat(depth = 1) { return flatten([], Object(this), Math.trunc(Number(depth)) || 0); },
        flatMap(fn, self) { return flatten([], apply(Array.prototype.map, this, [fn, self]), 1); },
    };
    for (const name of ["flat", "flatMap"]) defineProperty(Array.prototype, name, { value: rewritten[name], ...plain });
})

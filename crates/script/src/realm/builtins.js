// Time, chance and errors, as scripts of the service know them.
//
// Promise: what a script can learn about time and chance comes from `host`. `new Error(number, message)` keeps both.
(function (host) {
    "use strict";
    const { construct, ownKeys } = Reflect;
    const { defineProperty, getOwnPropertyDescriptor, setPrototypeOf } = Object;

    // `wrapper` takes the place of a native constructor; instances and their prototype stay what they were.
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
    // The two hooks of the stack live outside any object, where no sweep would find them.
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

    // A callback after the call is over could speak to the next one.
    delete globalThis.WeakRef;
    delete globalThis.FinalizationRegistry;
})

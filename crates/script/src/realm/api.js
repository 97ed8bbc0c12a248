// The server-side API: getContext(), its collection, request and response, `__`, console.log, ErrorCodes.
//
// Guarantees: every operation of a script is enqueued at the host under an id, or is not accepted (the function returns
// false), or throws. `host.ask` validates it; query.js adds the JavaScript query API.
//
// `host` is native. The returned functions are the only entry points that the session calls.
(function (host) {
    "use strict";
    const { parse, stringify } = JSON;
    const { create, freeze, defineProperty } = Object;
    const { isArray } = Array;

    const ErrorCodes = freeze({
        BadRequest: 400,
        Forbidden: 403,
        NotFound: 404,
        Conflict: 409,
        PreconditionFailed: 412,
        RequestEntityTooLarge: 413,
        RetryWith: 449,
        InternalServerError: 500,
    });

    // The state of one call. `open` creates it, `close` drops it.
    let call;

    function open(mode) {
        call = { mode, waiting: create(null) };
    }

    function close() {
        call = undefined;
    }

    function fail(number, message) {
        return new Error(number, message);
    }

    function bad(message) {
        return fail(ErrorCodes.BadRequest, message);
    }

    function need(name, least, given) {
        if (given < least) throw bad(`${name} needs at least ${least} argument(s), it was given ${given}.`);
    }

    // (options, callback), (options), (callback) or nothing.
    function settle(options, callback) {
        if (callback === undefined && typeof options === "function") {
            callback = options;
            options = undefined;
        }
        if (options === undefined || options === null) options = {};
        if (typeof options !== "object") throw bad(`"options" must be an object, it is of type "${typeof options}".`);
        if (callback === null) callback = undefined;
        if (callback !== undefined && typeof callback !== "function") {
            throw bad(`"callback" must be a function, it is of type "${typeof callback}".`);
        }
        return { options, callback };
    }

    function word(value) {
        return value === undefined || value === null || value === "" ? undefined : String(value);
    }

    // Enqueues one operation. If given, `arrive(payload, options)` is called with its result.
    function ask(kind, link, body, options, callback, arrive) {
        const ticket = host.ask({
            __proto__: null,
            kind,
            link,
            body,
            etag: word(options.etag),
            ifNoneMatch: word(options.ifNoneMatch),
            indexAction: word(options.indexAction),
            continuation: word(options.continuation),
            pageSize: options.pageSize === undefined ? undefined : Number(options.pageSize),
            enableScan: options.enableScan === true,
        });
        if (ticket < 0) throw refusal(ticket, link);
        if (ticket > 0) call.waiting[ticket] = { callback, arrive };
        return ticket > 0;
    }

    function refusal(code, link) {
        switch (code) {
            case -1: return bad(`Invalid link: "${String(link)}".`);
            case -2: return bad(`The link "${String(link)}" lies outside the current collection.`);
            case -3: return fail(ErrorCodes.RequestEntityTooLarge, "The document is larger than a request may be.");
            default: return bad("The operation has options that are not valid.");
        }
    }

    // Delivers the result of one operation. `number` is 0 unless the operation failed.
    function deliver(ticket, number, kind, text, continuation) {
        const { callback, arrive } = call.waiting[ticket];
        delete call.waiting[ticket];
        if (number !== 0) {
            const error = fail(number, text);
            error.body = text;
            if (callback === undefined) throw error;
            callback(error);
            return;
        }
        const options = {};
        if (continuation !== undefined) options.continuation = continuation;
        if (kind === "notModified") options.notModified = true;
        if (arrive !== undefined) arrive(parse(text), options);
        else if (callback === undefined) return;
        else if (kind === "deleted") callback(undefined, options);
        else callback(undefined, kind === "notModified" ? undefined : parse(text), options);
    }

    // The JSON of a document; an id is added to a copy, never to the script's object.
    function document(body, options) {
        const given = typeof body === "string" ? parse(body) : body;
        if (typeof given !== "object" || given === null || isArray(given)) {
            throw bad("A document must be an object, or a string with the JSON of one.");
        }
        const keep = options === undefined || given.id || options.disableAutomaticIdGeneration === true
            || options.disableAutomaticIdGeneration === "true";
        const text = stringify(keep ? given : { ...given, id: host.guid() });
        if (typeof text !== "string" || text[0] !== "{") throw bad("A document must be an object.");
        return text;
    }

    function put(kind, name, given, link, body, rawOptions, rawCallback) {
        need(name, 2, given);
        if (body === null || (typeof body !== "object" && typeof body !== "string")) {
            throw bad("A document must be an object, or a string with the JSON of one.");
        }
        const { options, callback } = settle(rawOptions, rawCallback);
        return ask(kind, link, document(body, kind === "replace" ? undefined : options), options, callback);
    }

    function plain(kind, name, given, link, rawOptions, rawCallback) {
        need(name, 1, given);
        const { options, callback } = settle(rawOptions, rawCallback);
        return ask(kind, link, undefined, options, callback);
    }

    function query(link, filter, rawOptions, rawCallback, given) {
        need("queryDocuments", 2, given);
        if (typeof filter !== "string" && (typeof filter !== "object" || filter === null)) {
            throw bad(`"filterQuery" must be a string or an object, it is of type "${typeof filter}".`);
        }
        const { options, callback } = settle(rawOptions, rawCallback);
        const text = stringify(typeof filter === "string" ? { query: filter } : filter);
        return ask("query", link, text, options, callback);
    }

    function notBuilt(name) {
        return function () {
            throw bad(host.refused(name));
        };
    }

    const collection = {
        getSelfLink() { return host.fact("selfLink"); },
        getAltLink() { return host.fact("altLink"); },
        createDocument(link, body, options, callback) {
            return put("create", "createDocument", arguments.length, link, body, options, callback);
        },
        upsertDocument(link, body, options, callback) {
            return put("upsert", "upsertDocument", arguments.length, link, body, options, callback);
        },
        replaceDocument(link, body, options, callback) {
            return put("replace", "replaceDocument", arguments.length, link, body, options, callback);
        },
        readDocument(link, options, callback) {
            return plain("read", "readDocument", arguments.length, link, options, callback);
        },
        deleteDocument(link, options, callback) {
            return plain("delete", "deleteDocument", arguments.length, link, options, callback);
        },
        readDocuments(link, options, callback) {
            return plain("readFeed", "readDocuments", arguments.length, link, options, callback);
        },
        queryDocuments(link, filter, options, callback) {
            return query(link, filter, options, callback, arguments.length);
        },
    };
    for (const verb of ["create", "upsert", "read", "replace", "delete"]) {
        collection[`${verb}Attachment`] = notBuilt(`${verb}Attachment`);
    }
    for (const verb of ["query", "read"]) collection[`${verb}Attachments`] = notBuilt(`${verb}Attachments`);

    // A request or response: one value per name, each with its own accessors, and generic accessors by name. There is
    // one call at a time, so the functions are created once and find its values through `call`.
    function map(values) {
        const find = (name) => {
            const value = typeof name === "string" && Object.hasOwn(values, name) ? values[name] : undefined;
            if (value === undefined) throw bad(`There is no value "${String(name)}".`);
            return value;
        };
        const set = (name, value) => {
            const slot = find(name);
            if (!slot.mayWrite()) throw fail(ErrorCodes.Forbidden, `The value "${name}" cannot be written.`);
            slot.set(value);
        };
        // Strings are concatenated, numbers are added; a missing value is set.
        const append = (name, value) => {
            const old = find(name).get();
            set(name, old === undefined || old === null ? value : old + value);
        };
        const made = { getValue: (name) => find(name).get(), setValue: set, appendValue: append };
        for (const name of Object.keys(values)) {
            made[`get${name}`] = () => values[name].get();
            if (values[name].set === undefined) continue;
            made[`set${name}`] = (value) => set(name, value);
            made[`append${name}`] = (value) => append(name, value);
        }
        return made;
    }

    function fits(value) {
        const text = typeof value === "string" ? value : stringify(value);
        if (text !== undefined && text.length > host.bodyMax) {
            throw fail(ErrorCodes.RequestEntityTooLarge,
                "The body would be too large. Return what there is, with a continuation, and be called again.");
        }
        return value;
    }

    // The original body, until the script sets another.
    function bodyOf(side, fact, mayWrite) {
        return {
            get() {
                if (call[side] === undefined) {
                    const text = host.fact(fact);
                    call[side] = { value: text === undefined ? undefined : parse(text), isSet: false };
                }
                return call[side].value;
            },
            set(value) { call[side] = { value: fits(value), isSet: true }; },
            mayWrite,
        };
    }

    function given(name) {
        return { get: () => host.fact(name), mayWrite: () => false };
    }

    const request = map({
        Body: bodyOf("requestBody", "requestBody", () => call.mode === "pre"),
        OperationType: given("operationType"),
    });
    const response = map({
        Body: bodyOf("responseBody", "responseBody", () => true),
        OperationType: given("operationType"),
        MaxResourceQuota: given("maxResourceQuota"),
        ResourceQuotaCurrentUsage: given("resourceQuotaCurrentUsage"),
    });

    function abort(error) {
        call.aborted = { error };
        host.abort();
        throw error;
    }

    // Each call has its own objects, so that properties that a script adds to them are dropped with the call.
    function once(name, prototype) {
        if (call[name] === undefined) call[name] = create(prototype);
        return call[name];
    }

    const withoutResponse = {
        getCollection() { return once("collection", collection); },
        getRequest() { return once("request", request); },
        abort,
    };
    const withResponse = { ...withoutResponse, getResponse() { return once("response", response); } };

    function context() {
        return once("context", call.mode === "pre" ? withoutResponse : withResponse);
    }

    function alias() {
        if (call.alias === undefined) {
            const made = context();
            call.alias = create(made.getCollection());
            call.alias.request = made.getRequest();
            if (made.getResponse !== undefined) call.alias.response = made.getResponse();
        }
        return call.alias;
    }

    // printf's %s and %%; a single argument is logged unchanged.
    function log(format) {
        need("log", 1, arguments.length);
        let text = format;
        if (arguments.length > 1) {
            if (typeof format !== "string") throw bad("With several arguments the first of console.log must be a string.");
            let next = 1;
            text = format.replace(/%([%s])/g, (_, letter) => (letter === "%" ? "%" : String(arguments[next++])));
        }
        if (!host.log(String(text))) {
            throw fail(ErrorCodes.RequestEntityTooLarge, "The log of this call is full.");
        }
    }

    const getContext = function getContext() { return context(); };
    const reaches = () => call !== undefined && call.mode !== "function";
    const console = { log };

    // User-defined functions have no context, so these names are undefined while one runs.
    const lazy = (name, get) => defineProperty(globalThis, name, { get, configurable: true, enumerable: false });
    lazy("getContext", () => (reaches() ? getContext : undefined));
    lazy("__", () => (reaches() ? alias() : undefined));
    lazy("console", () => console);
    lazy("ErrorCodes", () => ErrorCodes);

    // The source is evaluated as the whole of an arrow function and must be exactly that: text that closes the
    // bracket early would otherwise run, and keep state, outside any call.
    const indirectEval = eval;
    const { toString } = Function.prototype;
    const { apply } = Reflect;
    function compile(text) {
        const factory = indirectEval(text);
        if (typeof factory !== "function" || apply(toString, factory, []) !== text) {
            throw new SyntaxError("A script is one function.");
        }
        return factory;
    }

    function run(factory, args) {
        const main = factory();
        if (typeof main !== "function") throw new TypeError("A script is one function; this one is not.");
        return apply(main, undefined, args);
    }

    function bodies() {
        const set = (body) => (body !== undefined && body.isSet ? body.value : undefined);
        return [set(call.requestBody), set(call.responseBody)];
    }

    function rethrow() {
        throw call.aborted.error;
    }

    // Objects that scripts can reach, but not from a global; a frozen realm freezes these, too.
    const reachable = [collection, console, getContext, withResponse, withoutResponse, request, response];
    return { open, close, compile, run, deliver, bodies, rethrow, collection, context, ask, settle, bad, reachable };
})

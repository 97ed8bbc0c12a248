//! Every method of the server-side API, called from scripts.

use pleiad_model::Value;

use crate::testing::{ALT_LINK, TestHost, call, parse, procedure, runtime};
use crate::{Cause, EntryPoint, OperationType, Program, ScriptOutcome, ScriptStep};

mod samples; // typical scripts
mod hostile; // hostile scripts

/// Runs a procedure over some documents and checks the body that it sets.
#[track_caller]
fn check_body(documents: &[&str], source: &str, want: &str) -> TestHost {
    let mut host = TestHost::of(documents);
    let outcome = host.run(&mut runtime(), source, procedure(&[]));
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.response_body.as_deref().map(parse), Some(parse(want)), "{source}");
    host
}

#[track_caller]
fn run_failing(documents: &[&str], source: &str) -> ScriptOutcome {
    let outcome = TestHost::of(documents).run(&mut runtime(), source, procedure(&[]));
    assert!(outcome.error.is_some(), "{source}: {outcome:?}");
    outcome
}

const ONE: &str = r#"{"id":"1","n":1}"#;
const TWO: &str = r#"{"id":"2","n":2}"#;
const THREE: &str = r#"{"id":"3","n":3}"#;

#[test]
fn arguments_are_passed_and_the_body_is_returned() {
    let source = "function (a, b, c) { getContext().getResponse().setBody([a, b.x, c === undefined]); }";
    let outcome = TestHost::default().run(&mut runtime(), source, procedure(&["1", r#"{"x":"ü"}"#]));
    assert_eq!(outcome.response_body.as_deref(), Some(r#"[1,"ü",true]"#));
    assert_eq!((outcome.usage.steps, outcome.usage.operations), (1, 0));
}

#[test]
fn functions_may_be_named_anonymous_arrows_or_several() {
    check_body(&[], "function named() { __.response.setBody(1) }", "1");
    check_body(&[], "function () { __.response.setBody(2) } // the end", "2");
    check_body(&[], "() => { __.response.setBody(3) }", "3");
    check_body(&[], "function main() { help(4) }\nfunction help(x) { __.response.setBody(x) }", "4");
    check_body(&[], "async function () { await null; __.response.setBody(5) }", "5");
}

#[test]
fn a_script_that_sets_no_body_returns_none() {
    let outcome = TestHost::default().run(&mut runtime(), "function () {}", procedure(&[]));
    assert_eq!((outcome.response_body, outcome.error), (None, None));
}

#[test]
fn links_of_the_collection() {
    let source =
        "function () { let c = getContext().getCollection(); __.response.setBody([c.getSelfLink(), __.getAltLink()]) }";
    check_body(&[], source, r#"["dbs/AAAAAA==/colls/AAAAAAAAAAA=/","dbs/shop/colls/orders"]"#);
}

#[test]
fn create_document_returns_the_document_and_generates_an_id() {
    let source = "function () {
        let doc = { n: 7 };
        let accepted = __.createDocument(__.getSelfLink(), doc, (err, made, options) => {
            __.response.setBody([accepted, made.n, made.id.length, doc.id === undefined, typeof options]);
        });
    }";
    let host = check_body(&[], source, r#"[true,7,36,true,"object"]"#);
    assert_eq!(host.documents.len(), 1);
    let text = "function () { __.createDocument(__.getSelfLink(), '{\"id\":\"t\"}', {}, (e, d) => __.response.setBody(d.id)) }";
    check_body(&[], text, r#""t""#);
}

#[test]
fn without_automatic_ids_the_host_decides() {
    let source = "function () {
        __.createDocument(__.getSelfLink(), { n: 7 }, { disableAutomaticIdGeneration: true },
            (err) => __.response.setBody(err.number));
    }";
    check_body(&[], source, "400");
}

#[test]
fn an_error_has_a_number_a_message_and_a_body() {
    let source = "function () {
        __.createDocument(__.getSelfLink(), { id: '1' }, (err, made) => {
            __.response.setBody([err.number === ErrorCodes.Conflict, err.body, err.message, err instanceof Error, made === undefined]);
        });
    }";
    let message = "Resource with specified id or name already exists.";
    check_body(&[ONE], source, &format!("[true,{message:?},{message:?},true,true]"));
}

#[test]
fn an_error_without_a_callback_ends_the_script() {
    let outcome = run_failing(&[ONE], "function () { __.createDocument(__.getSelfLink(), { id: '1' }); }");
    let error = outcome.error.unwrap();
    assert_eq!((error.cause, error.number), (Cause::Thrown, Some(409)));
    assert_eq!(error.message, "Error: Resource with specified id or name already exists.");
}

#[test]
fn read_replace_upsert_and_delete() {
    let source = "function () {
        let link = __.getAltLink() + '/docs/1', seen = [];
        __.readDocument(link, (err, doc) => {
            doc.n = 10;
            __.replaceDocument(doc._self, doc, { etag: doc._etag }, (err, doc) => {
                seen.push(doc.n);
                __.upsertDocument(__.getSelfLink(), { id: '2', n: 20 }, (err, doc) => {
                    seen.push(doc.n);
                    __.deleteDocument(link, {}, (err, options) => {
                        seen.push(err === undefined, typeof options);
                        __.readDocument(link, (err) => __.response.setBody([...seen, err.number]));
                    });
                });
            });
        });
    }";
    let host = check_body(&[ONE, TWO], source, r#"[10,20,true,"object",404]"#);
    assert_eq!(host.ids(), ["2"]);
}

#[test]
fn conditions_on_the_etag() {
    let source = "function () {
        let link = __.getAltLink() + '/docs/1';
        __.replaceDocument(link, { id: '1' }, { etag: 'other' }, (err) => {
            __.readDocument(link, (e, doc) => {
                __.readDocument(link, { ifNoneMatch: doc._etag }, (e, none, options) => {
                    __.response.setBody([err.number, none === undefined, options.notModified]);
                });
            });
        });
    }";
    check_body(&[ONE], source, "[412,true,true]");
}

#[test]
fn feeds_are_paged_with_continuations() {
    let source = "function () {
        let seen = [];
        (function next(continuation) {
            __.readDocuments(__.getSelfLink(), { pageSize: 2, continuation }, (err, docs, options) => {
                seen.push(docs.length);
                if (options.continuation) next(options.continuation); else __.response.setBody(seen);
            });
        })();
    }";
    check_body(&[ONE, TWO, THREE], source, "[2,1]");
}

#[test]
fn queries_are_text_or_text_with_parameters() {
    let source = "function () {
        __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', (err, docs) => {
            let query = { query: 'SELECT * FROM c WHERE c.n > @n', parameters: [{ name: '@n', value: 0 }] };
            __.queryDocuments(__.getSelfLink(), query, { pageSize: 1 }, (err, page, options) => {
                __.response.setBody([docs.length, page.length, options.continuation]);
            });
        });
    }";
    let host = check_body(&[ONE, TWO], source, r#"[2,1,"1"]"#);
    assert_eq!(host.queries, ["SELECT * FROM c", "SELECT * FROM c WHERE c.n > @n"]);
}

#[test]
fn invalid_arguments_throw_400_synchronously() {
    let source = |what: &str| {
        format!(
            "function () {{ try {{ {what} }} catch (e) {{ __.response.setBody([e.number, e instanceof Error]) }} }}"
        )
    };
    for wrong in [
        "__.createDocument()",
        "__.createDocument(__.getSelfLink())",
        "__.createDocument(__.getSelfLink(), 7)",
        "__.createDocument(__.getSelfLink(), null)",
        "__.createDocument(__.getSelfLink(), [])",
        "__.createDocument('dbs/other/colls/x', {})",
        "__.createDocument(7, {})",
        "__.createDocument(__.getSelfLink(), {}, 7)",
        "__.createDocument(__.getSelfLink(), {}, {}, 7)",
        "__.createDocument(__.getSelfLink(), {}, { indexAction: 'sometimes' })",
        "__.readDocument()",
        "__.readDocument(__.getSelfLink())",
        "__.readDocuments(__.getSelfLink(), { pageSize: 1.5 })",
        "__.queryDocuments(__.getSelfLink())",
        "__.queryDocuments(__.getSelfLink(), 7)",
        "__.queryDocuments(__.getSelfLink(), {})",
        "__.readAttachments(__.getSelfLink())",
        "__.spatial.distance({}, {})",
        "__.filter(7)",
        "__.pluck('')",
        "__.unwind((a, b) => a)",
        "__.chain().filter(d => true, () => {})",
        "console.log()",
        "console.log(1, 2)",
        "__.response.getValue('Nonsense')",
        "__.response.setValue('Nonsense', 1)",
    ] {
        check_body(&[], &source(wrong), "[400,true]");
    }
    check_body(&[], &source("__.request.setValue('Body', 1)"), "[403,true]");
    check_body(&[], &source("__.response.setValue('OperationType', 1)"), "[403,true]");
}

#[test]
fn requests_and_responses_are_maps_of_values() {
    let source = "function () {
        let r = getContext().getResponse();
        r.setBody('a'); r.appendBody('b'); r.appendValue('Body', 'c');
        r.setBody([r.getBody(), r.getValue('Body'), r.getMaxResourceQuota(), r.getResourceQuotaCurrentUsage(),
            getContext().getRequest().getBody() === undefined, __.request.getOperationType() === undefined]);
    }";
    check_body(&[], source, r#"["abc","abc","documentSize=10240;","documentSize=0;",true,true]"#);
}

#[test]
fn a_pre_trigger_changes_the_request_and_has_no_response() {
    let source = "function () {
        let request = getContext().getRequest(), doc = request.getBody();
        if (getContext().getResponse !== undefined) throw new Error('a response?');
        doc.kind = request.getOperationType();
        request.setBody(doc);
    }";
    let entry =
        EntryPoint::PreTrigger { operation: OperationType::Create, request_body: Some(r#"{"id":"1"}"#.to_owned()) };
    let outcome = TestHost::default().run(&mut runtime(), source, call(entry));
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.request_body.as_deref(), Some(r#"{"id":"1","kind":"Create"}"#));
}

#[test]
fn a_post_trigger_sees_both_bodies() {
    let source =
        "function () { console.log(__.request.getBody().a + __.response.getBody().b + __.request.getOperationType()) }";
    let entry = EntryPoint::PostTrigger {
        operation: OperationType::Replace,
        request_body: Some(r#"{"a":"x"}"#.to_owned()),
        response_body: Some(r#"{"b":"y"}"#.to_owned()),
    };
    let outcome = TestHost::default().run(&mut runtime(), source, call(entry));
    assert_eq!((outcome.error, outcome.log.as_str(), outcome.request_body), (None, "xyReplace", None));
}

#[test]
fn console_log_is_formatted_and_collected_only_on_request() {
    let source = "function () { console.log('a%sc%%', 'b'); console.log(7); throw new Error('late'); }";
    let outcome = TestHost::default().run(&mut runtime(), source, procedure(&[]));
    assert_eq!(outcome.log, "abc%7");
    let quiet = crate::ScriptCall { is_logging: false, ..procedure(&[]) };
    assert_eq!(TestHost::default().run(&mut runtime(), source, quiet).log, "");
}

#[test]
fn errors_have_a_message_a_position_and_a_number() {
    let source =
        "function main() {\n    fail();\n    function fail() { throw new Error(ErrorCodes.Forbidden, 'no entry'); }\n}";
    let error = run_failing(&[], source).error.unwrap();
    assert_eq!((error.number, error.line, error.message.as_str()), (Some(403), Some(3), "Error: no entry"));
    let text = error.to_string();
    assert!(text.starts_with("Encountered exception while executing function. Exception = Error: no entry"), "{text}");
    assert!(text.contains("at fail (test:3:") && text.contains("at main (test:2:"), "{text}");
    assert!(!text.contains("api.js"), "{text}");
}

#[test]
fn invalid_source_is_a_syntax_error_with_its_line() {
    for wrong in ["function () {\n  let = ;\n}", "7", "", "function (", "1); globalThis.x = 1; (2", "}{", "\0"] {
        let error = runtime().compile(&Program::new("wrong", wrong)).err();
        let error = error.or_else(|| run_failing(&[], wrong).error).unwrap();
        assert!(matches!(error.cause, Cause::Syntax | Cause::Thrown), "{wrong}: {error:?}");
    }
    let error = runtime().compile(&Program::new("wrong", "function () {\n  let = ;\n}")).unwrap_err();
    assert_eq!((error.cause, error.line), (Cause::Syntax, Some(2)), "{error:?}");
    assert!(error.to_string().starts_with("Encountered exception while compiling Javascript."), "{error}");
}

#[test]
fn abort_ends_the_call_even_if_it_is_caught() {
    let error =
        run_failing(&[], "function () { try { getContext().abort(new Error('stop')) } catch (e) {} }").error.unwrap();
    assert_eq!(error.message, "Error: stop");
    let late = "async function () { await null; getContext().abort(new Error('later')) }";
    assert_eq!(run_failing(&[], late).error.unwrap().message, "Error: later");
}

#[test]
fn replies_may_arrive_in_any_order_and_number() {
    let source = "function () {
        let seen = [];
        for (let n of ['1', '2', '3']) __.readDocument(__.getAltLink() + '/docs/' + n, (e, d) => {
            seen.push(d.n);
            __.response.setBody(seen);
        });
    }";
    let (mut runtime, mut host) = (runtime(), TestHost::of(&[ONE, TWO, THREE]));
    let mut session = runtime.start(&Program::new("test", source), procedure(&[]));
    let ScriptStep::Execute(operations) = session.step(Vec::new()) else { panic!("no operations requested") };
    let mut replies: Vec<_> = operations.into_iter().map(|operation| host.reply_to(operation)).collect();
    let third = replies.pop().unwrap();
    assert!(matches!(session.step(vec![third]), ScriptStep::Execute(none) if none.is_empty()));
    let ScriptStep::Done(outcome) = session.step(replies) else { panic!("not done") };
    assert_eq!(outcome.response_body.as_deref(), Some("[3,1,2]"));
    assert_eq!(outcome.usage.operations, 3);
}

#[test]
fn a_script_sees_that_the_host_accepts_no_more() {
    let source = "function () {
        let made = 0;
        (function next() {
            let accepted = __.createDocument(__.getSelfLink(), { id: 'd' + made }, (err) => { made++; next(); });
            if (!accepted) __.response.setBody(made);
        })();
    }";
    let mut host = TestHost { operations_max: Some(3), ..TestHost::default() };
    let outcome = host.run(&mut runtime(), source, procedure(&[]));
    assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some("3")));
}

#[test]
fn time_and_randomness_come_from_the_host() {
    let source =
        "function () { __.response.setBody([Date.now(), new Date().getTime(), new Date(0).toISOString(), typeof Date(),
        new Date() instanceof Date, Math.random()]) }";
    let run = || TestHost::default().run(&mut runtime(), source, procedure(&[])).response_body.unwrap();
    let first = parse(&run());
    let items = first.as_array().unwrap();
    assert_eq!(items[0].as_i64(), Some(1_700_000_000_000));
    assert_eq!(items[1], items[0]);
    assert_eq!(items[2], Value::from("1970-01-01T00:00:00.000Z"));
    assert_eq!((&items[3], &items[4]), (&Value::from("string"), &Value::Bool(true)));
    assert_eq!(parse(&run()), first, "the same seed gives the same numbers");
}

#[test]
fn javascript_queries_are_translated_to_sql_where_possible() {
    let source = "function () { __.filter(d => d.n > 1, (err, docs) => __.response.setBody(docs.length)) }";
    let host = check_body(&[ONE], source, "1");
    assert_eq!(host.queries, [r#"SELECT VALUE r FROM r WHERE (r["n"] > 1)"#]);
    let source = "function () {
        let result = __.chain().filter(function (d) { return d.n >= 1 && !d.gone; }).sortByDescending(d => d.n).pluck('id').value();
        if (!result.isAccepted) throw new Error('not accepted');
    }";
    let mut host = TestHost::of(&[ONE]);
    host.run(&mut runtime(), source, procedure(&[]));
    assert!(host.queries[0].starts_with(r#"SELECT VALUE r["id"] FROM r WHERE"#), "{}", host.queries[0]);
    assert!(host.queries[0].ends_with(r#"ORDER BY r["n"] DESC"#), "{}", host.queries[0]);
}

#[test]
fn untranslatable_stages_run_in_javascript() {
    let local = "let one = () => 1;";
    let over = |query: &str| format!("function () {{ {local} {query} }}");
    let docs = [r#"{"id":"1","n":2,"tags":["a",["b"]]}"#, r#"{"id":"2","n":3,"tags":[]}"#, r#"{"id":"3","n":1}"#];
    check_body(
        &docs,
        &over("__.filter(d => d.n > one(), { pageSize: 10 }, (e, f) => __.response.setBody(f.map(d => d.id)))"),
        r#"["1","2"]"#,
    );
    check_body(&docs, &over("__.map(d => d.n * one() + 1)"), "[3,4,2]");
    check_body(
        &docs,
        &over("__.chain().map(d => [d.id, one()][0]).value((e, f) => __.response.setBody(f), { pageSize: 2 })"),
        r#"["1","2"]"#,
    );
    check_body(&docs, &over("__.chain().map(d => { let t = d.tags; return t; }).flatten().value()"), r#"["a","b"]"#);
    check_body(
        &docs,
        &over("__.chain().map(d => { let t = d.tags; return t; }).flatten(true).value()"),
        r#"["a",["b"]]"#,
    );
    check_body(
        &docs,
        &over("__.chain().sortBy(d => d.n * one()).pluck('id').value({ pageSize: 1 })"),
        r#"["3","1","2"]"#,
    );
    check_body(
        &docs,
        &over("__.chain().sortByDescending(d => d.n * one()).map(d => d.id).value()"),
        r#"["2","1","3"]"#,
    );
    let unwind = "__.chain().unwind(d => (one(), d.tags), (d, t) => ({ id: d.id, t })).value()";
    check_body(&docs, &over(unwind), r#"[{"id":"1","t":"a"},{"id":"1","t":["b"]}]"#);
    check_body(&docs, &over("__.unwind(d => (one(), d.tags))"), r#"["a",["b"]]"#);
}

#[test]
fn a_pre_trigger_needs_a_callback_for_its_queries() {
    let entry = || EntryPoint::PreTrigger { operation: OperationType::Create, request_body: None };
    let outcome = TestHost::default().run(&mut runtime(), "function () { __.filter(d => true) }", call(entry()));
    assert_eq!(outcome.error.unwrap().number, Some(400));
    let outcome =
        TestHost::default().run(&mut runtime(), "function () { __.filter(d => true, () => {}) }", call(entry()));
    assert_eq!(outcome.error, None);
}

#[test]
fn document_links_may_have_leading_and_trailing_slashes() {
    check_body(
        &[ONE],
        &format!("function () {{ __.readDocument('/{ALT_LINK}/docs/1/', (e, d) => __.response.setBody(d.n)) }}"),
        "1",
    );
}

//! S114, S118: typical scripts, run against an in-memory host. The host is responsible for committing or rolling back
//! their writes atomically.

use crate::testing::{TestHost, call, parse, procedure, runtime};
use crate::{EntryPoint, OperationType, Program};

const BULK_IMPORT: &str = "
    function bulkImport(docs) {
        var collection = getContext().getCollection(), count = 0;
        if (!docs) throw new Error('The array is undefined or null.');
        if (docs.length == 0) { getContext().getResponse().setBody(0); return; }
        tryCreate(docs[count], callback);
        function tryCreate(doc, callback) {
            var isAccepted = collection.createDocument(collection.getSelfLink(), doc, callback);
            if (!isAccepted) getContext().getResponse().setBody(count);
        }
        function callback(err, doc, options) {
            if (err) throw err;
            count++;
            if (count >= docs.length) getContext().getResponse().setBody(count);
            else tryCreate(docs[count], callback);
        }
    }";

#[test]
fn bulk_import_continues_with_the_remaining_documents() {
    let ids: Vec<String> = (0..25).map(|n| format!(r#"{{"id":"{n}"}}"#)).collect();
    let (mut host, mut runtime, program) = (TestHost::default(), runtime(), Program::new("bulkImport", BULK_IMPORT));
    let (mut done, mut calls) = (0, 0);
    while done < ids.len() {
        host.operations_max = Some(host.operation_count + 10);
        let rest = format!("[{}]", ids[done..].join(","));
        let outcome = host.execute(&mut runtime, &program, procedure(&[&rest]));
        assert_eq!(outcome.error, None);
        done += outcome.response_body.unwrap().parse::<usize>().unwrap();
        calls += 1;
    }
    assert_eq!((host.documents.len(), calls), (25, 3));
}

#[test]
fn bulk_import_reports_an_existing_document() {
    let mut host = TestHost::of(&[r#"{"id":"1"}"#]);
    let outcome = host.run(&mut runtime(), BULK_IMPORT, procedure(&[r#"[{"id":"0"},{"id":"1"}]"#]));
    assert_eq!(outcome.error.unwrap().number, Some(409));
}

#[test]
fn bulk_delete_with_continuation() {
    let source = "
        function bulkDelete(query) {
            var collection = getContext().getCollection(), response = getContext().getResponse();
            var result = { deleted: 0, continuation: true };
            tryQuery();
            function tryQuery(continuation) {
                var accepted = collection.queryDocuments(collection.getSelfLink(), query, { continuation: continuation },
                    function (err, docs, options) {
                        if (err) throw err;
                        if (docs.length > 0) tryDelete(docs);
                        else if (options.continuation) tryQuery(options.continuation);
                        else { result.continuation = false; response.setBody(result); }
                    });
                if (!accepted) response.setBody(result);
            }
            function tryDelete(docs) {
                if (docs.length == 0) return tryQuery();
                var accepted = collection.deleteDocument(docs[0]._self, {}, function (err) {
                    if (err) throw err;
                    result.deleted++;
                    docs.shift();
                    tryDelete(docs);
                });
                if (!accepted) response.setBody(result);
            }
        }";
    let documents: Vec<String> = (0..7).map(|n| format!(r#"{{"id":"{n}"}}"#)).collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let (mut host, mut runtime) = (TestHost::of(&documents), runtime());
    host.operations_max = Some(5);
    let first = host.run(&mut runtime, source, procedure(&[r#""SELECT * FROM c""#]));
    assert_eq!(parse(&first.response_body.unwrap()), parse(r#"{"deleted":4,"continuation":true}"#));
    host.operations_max = None;
    let second = host.run(&mut runtime, source, procedure(&[r#""SELECT * FROM c""#]));
    assert_eq!(parse(&second.response_body.unwrap()), parse(r#"{"deleted":3,"continuation":false}"#));
    assert!(host.documents.is_empty());
}

#[test]
fn s114_two_items_swap_values() {
    let source = "
        function swap(firstId, secondId) {
            var __ = getContext().getCollection(), link = id => __.getAltLink() + '/docs/' + id;
            __.readDocument(link(firstId), {}, (err, first) => {
                if (err) throw new Error('Unable to read ' + firstId + ': ' + err.message);
                __.readDocument(link(secondId), {}, (err, second) => {
                    if (err) throw new Error('Unable to read ' + secondId + ': ' + err.message);
                    [first.item, second.item] = [second.item, first.item];
                    if (!__.replaceDocument(first._self, first, { etag: first._etag }, (err) => {
                        if (err) throw err;
                        if (!__.replaceDocument(second._self, second, (err) => { if (err) throw err; })) throw new Error('late');
                    })) throw new Error('late');
                });
            });
        }";
    let mut host = TestHost::of(&[r#"{"id":"a","item":"sword"}"#, r#"{"id":"b","item":"shield"}"#]);
    let outcome = host.run(&mut runtime(), source, procedure(&[r#""a""#, r#""b""#]));
    assert_eq!(outcome.error, None);
    assert_eq!(host.get("a").get("item").unwrap().as_str(), Some("shield"));
    assert_eq!(host.get("b").get("item").unwrap().as_str(), Some("sword"));
    let outcome = host.run(&mut runtime(), source, procedure(&[r#""a""#, r#""x""#]));
    assert!(outcome.error.unwrap().message.starts_with("Error: Unable to read x: Entity"));
}

#[test]
fn s118_a_post_trigger_keeps_a_metadata_document() {
    let source = "
        function updateMetadata() {
            var collection = getContext().getCollection(), made = getContext().getResponse().getBody();
            var accepted = collection.queryDocuments(collection.getSelfLink(), 'SELECT * FROM root r WHERE r.id = \"_metadata\"',
                function (err, found) {
                    if (err) throw new Error('Error' + err.message);
                    if (found.length != 1) throw 'Unable to find metadata document';
                    var metadata = found[0];
                    metadata.createdDocuments += 1;
                    metadata.createdNames += ' ' + made.id;
                    if (!collection.replaceDocument(metadata._self, metadata, function (err) {
                        if (err) throw 'Unable to update metadata, abort';
                    })) throw 'Unable to update metadata, abort';
                });
            if (!accepted) throw 'Unable to update metadata, abort';
        }";
    let entry = || EntryPoint::PostTrigger {
        operation: OperationType::Create,
        request_body: None,
        response_body: Some(r#"{"id":"new"}"#.to_owned()),
    };
    let mut host = TestHost::of(&[r#"{"id":"_metadata","createdDocuments":5,"createdNames":"old"}"#]);
    assert_eq!(host.run(&mut runtime(), source, call(entry())).error, None);
    assert_eq!(host.get("_metadata").get("createdDocuments").unwrap().as_i64(), Some(6));
    assert_eq!(host.get("_metadata").get("createdNames").unwrap().as_str(), Some("old new"));
    let outcome = TestHost::default().run(&mut runtime(), source, call(entry()));
    assert_eq!(outcome.error.unwrap().message, "Unable to find metadata document");
}

#[test]
fn a_pre_trigger_validates_and_completes() {
    let source = "
        function validate() {
            var request = getContext().getRequest(), doc = request.getBody();
            if (!('name' in doc)) throw new Error(ErrorCodes.BadRequest, 'A name is needed.');
            if (!('timestamp' in doc)) doc.timestamp = new Date().getTime();
            request.setBody(doc);
        }";
    let with = |body: &str| {
        call(EntryPoint::PreTrigger { operation: OperationType::Create, request_body: Some(body.to_owned()) })
    };
    let good = TestHost::default().run(&mut runtime(), source, with(r#"{"id":"1","name":"x"}"#));
    assert_eq!(good.request_body.as_deref(), Some(r#"{"id":"1","name":"x","timestamp":1700000000000}"#));
    let bad = TestHost::default().run(&mut runtime(), source, with(r#"{"id":"1"}"#)).error.unwrap();
    assert_eq!((bad.number, bad.message.as_str()), (Some(400), "Error: A name is needed."));
}

#[test]
fn an_aggregate_over_pages_with_undeclared_variables() {
    let source = "
        function total() {
            sum = 0;
            page();
            function page(continuation) {
                __.readDocuments(__.getSelfLink(), { pageSize: 2, continuation: continuation }, function (err, docs, options) {
                    for (i = 0; i < docs.length; i++) sum += docs[i].amount || 0;
                    if (options.continuation) page(options.continuation); else __.response.setBody({ sum: sum });
                });
            }
        }";
    let documents: Vec<String> = (0..5).map(|n| format!(r#"{{"id":"{n}","amount":{n}}}"#)).collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let mut runtime = runtime();
    for _ in 0..2 {
        let outcome = TestHost::of(&documents).run(&mut runtime, source, procedure(&[]));
        assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some(r#"{"sum":10}"#)));
    }
}

#[test]
fn the_latest_state_of_a_device() {
    let source = "
        function record(reading) {
            var latest = 'latest-' + reading.device;
            __.createDocument(__.getSelfLink(), reading, (err) => {
                if (err) throw err;
                __.readDocument(__.getAltLink() + '/docs/' + latest, (err, state) => {
                    if (err && err.number != ErrorCodes.NotFound) throw err;
                    if (state && state.at >= reading.at) return __.response.setBody('old');
                    __.upsertDocument(__.getSelfLink(), { id: latest, at: reading.at, value: reading.value }, (err) => {
                        if (err) throw err;
                        __.response.setBody('new');
                    });
                });
            });
        }";
    let (mut host, mut runtime) = (TestHost::default(), runtime());
    for (reading, want) in [
        (r#"{"id":"1","device":"d","at":5,"value":50}"#, r#""new""#),
        (r#"{"id":"2","device":"d","at":3,"value":30}"#, r#""old""#),
        (r#"{"id":"3","device":"d","at":9,"value":90}"#, r#""new""#),
    ] {
        let outcome = host.run(&mut runtime, source, procedure(&[reading]));
        assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some(want)));
    }
    assert_eq!(host.get("latest-d").get("value").unwrap().as_i64(), Some(90));
}

#[test]
fn promises_around_callbacks() {
    let source = "
        async function main() {
            const read = id => new Promise((done, fail) => {
                const accepted = __.readDocument(__.getAltLink() + '/docs/' + id, (err, doc) => err ? fail(err) : done(doc));
                if (!accepted) fail(new Error('late'));
            });
            try {
                const [a, b] = await Promise.all([read('1'), read('2')]);
                __.response.setBody(a.n + b.n);
                await read('none');
            } catch (e) { getContext().abort(e); }
        }";
    let mut host = TestHost::of(&[r#"{"id":"1","n":1}"#, r#"{"id":"2","n":2}"#]);
    let outcome = host.run(&mut runtime(), source, procedure(&[]));
    assert_eq!(outcome.error.unwrap().number, Some(404));
    assert_eq!(outcome.usage.operations, 3);
}

//! Validation of links, options and sizes.

use super::{OperationError, RawOperation};
use crate::call::Collection;
use crate::operation::{DocumentAction, DocumentLink, IndexingDirective, PageOptions};

fn collection() -> Collection {
    Collection {
        self_link: "dbs/AAAAAA==/colls/AAAAAAAAAAA=/".to_owned(),
        alt_link: "dbs/shop/colls/orders".to_owned(),
        ..Collection::default()
    }
}

fn raw_operation(kind: &str, link: &str) -> RawOperation {
    RawOperation {
        kind: kind.to_owned(),
        link: Some(link.to_owned()),
        body: Some("{}".to_owned()),
        ..RawOperation::default()
    }
}

fn action(raw: RawOperation) -> Result<DocumentAction, OperationError> {
    raw.action(&collection(), 10)
}

#[test]
fn documents_are_named_by_id_or_rid_of_this_collection_only() {
    let read = |link: DocumentLink| Ok(DocumentAction::Read { link, if_none_match: None });
    let by_id = read(DocumentLink::Id("7".to_owned()));
    assert_eq!(action(raw_operation("read", "dbs/shop/colls/orders/docs/7")), by_id);
    assert_eq!(action(raw_operation("read", "/dbs/shop/colls/orders/docs/7/")), by_id);
    let by_rid = read(DocumentLink::Rid("x==".to_owned()));
    assert_eq!(action(raw_operation("read", "dbs/AAAAAA==/colls/AAAAAAAAAAA=/docs/x==/")), by_rid);
    assert_eq!(action(raw_operation("read", "dbs/shop/colls/other/docs/7")), Err(OperationError::LinkOutside));
    assert_eq!(action(raw_operation("read", "dbs/shop/colls/orders2/docs/7")), Err(OperationError::LinkOutside));
    for wrong in ["", "7", "dbs/shop/colls/orders", "dbs/shop/colls/orders/docs/", "dbs/shop/colls/orders/docs/7/x"] {
        assert_eq!(action(raw_operation("read", wrong)), Err(OperationError::InvalidLink), "{wrong}");
    }
}

#[test]
fn a_body_is_as_large_as_the_limit_and_no_larger() {
    let sized = |bytes: usize| RawOperation {
        body: Some("x".repeat(bytes)),
        ..raw_operation("create", "dbs/shop/colls/orders")
    };
    assert_eq!(
        action(sized(10)),
        Ok(DocumentAction::Create { body: "x".repeat(10), indexing: IndexingDirective::Default })
    );
    assert_eq!(action(sized(11)), Err(OperationError::TooLarge));
}

#[test]
fn page_sizes() {
    let sized =
        |page_size: Option<f64>| RawOperation { page_size, ..raw_operation("readFeed", "dbs/shop/colls/orders") };
    let page = |size: Option<u32>| Ok(DocumentAction::ReadFeed { page: PageOptions { size, continuation: None } });
    assert_eq!(action(sized(None)), page(Some(100)));
    assert_eq!(action(sized(Some(7.0))), page(Some(7)));
    assert_eq!(action(sized(Some(-1.0))), page(None));
    assert_eq!(action(sized(Some(1.5))), Err(OperationError::InvalidOptions));
    assert_eq!(action(sized(Some(f64::NAN))), Err(OperationError::InvalidOptions));
    assert_eq!(action(sized(Some(1e300))), Err(OperationError::InvalidOptions));
}

#[test]
fn queries_have_text_and_named_parameters() {
    let query =
        |body: &str| RawOperation { body: Some(body.to_owned()), ..raw_operation("query", "dbs/shop/colls/orders") };
    let large = |raw: RawOperation| raw.action(&collection(), 1000);
    let good = r#"{"query":"SELECT @a","parameters":[{"name":"@a","value":[1]}]}"#;
    let Ok(DocumentAction::Query { query: found, .. }) = large(query(good)) else { panic!("not a query") };
    assert_eq!((found.text.as_str(), found.parameters.len()), ("SELECT @a", 1));
    for wrong in ["{}", "[]", "no json", r#"{"query":1}"#, r#"{"query":"x","parameters":{}}"#] {
        assert_eq!(large(query(wrong)), Err(OperationError::InvalidOptions), "{wrong}");
    }
}

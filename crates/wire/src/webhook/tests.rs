//! A listener that accepts one connection plays the operator's server.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

fn hot() -> Alert {
    let busiest_key = Some(r#"["c1"]"#.to_owned());
    let kind = AlertKind::HotPartition { share_ru: 400.0, throttled: 31, busiest_key };
    Alert { ts_s: 1_700_000_000, database: "shop".to_owned(), container: "orders".to_owned(), range: 0, kind }
}

async fn post_alert(answer: &'static str) -> (String, Result<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/alerts?team=db", listener.local_addr().unwrap());
    let received = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"}") {
            let mut chunk = [0; 4096];
            let count = socket.read(&mut chunk).await.unwrap();
            text.extend_from_slice(&chunk[..count]);
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(text).unwrap()
    });
    let outcome = Webhook::new(&url).unwrap().post(&hot()).await;
    (received.await.unwrap(), outcome)
}

#[tokio::test]
async fn an_alert_is_one_post_of_json() {
    let (received, outcome) = post_alert("HTTP/1.1 204 No Content\r\n\r\n").await;
    outcome.unwrap();
    assert!(received.starts_with("POST /alerts?team=db HTTP/1.1\r\n"), "{received}");
    let (_, body) = received.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        body,
        r#"{"kind":"HotPartition","time":1700000000,"database":"shop","container":"orders","partitionKeyRangeId":"0","shareRuPerSecond":400,"throttledRequests":31,"busiestPartitionKey":"[\"c1\"]","message":"partition key range 0 of shop/orders refused 31 requests in a minute; its share is 400 RU/s, the busiest key is [\"c1\"]"}"#
    );
}

#[tokio::test]
async fn an_error_status_is_reported() {
    let (_, outcome) = post_alert("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n").await;
    assert!(outcome.unwrap_err().to_string().contains("500"));
}

#[test]
fn only_http_and_https_urls_are_accepted() {
    for wrong in ["", "alerts", "ftp://example.org/x", "http://"] {
        assert!(Webhook::new(wrong).is_err(), "{wrong:?}");
    }
}

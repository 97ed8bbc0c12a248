//! An issuer that rotates its keys: one task that serves the contents of `Served`.

use std::sync::atomic::{AtomicUsize, Ordering};

use pleiad_model::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::account::bearer::tests::{Signer, issuer, set_of};

const CLAIMS: &str = r#"{"iss":"https://issuer/","aud":"https://cosmos.azure.com","exp":1700000600,"oid":"me"}"#;
const NOW_MS: u64 = 1_700_000_000_000;

fn set(signers: &[&Signer]) -> String {
    set_of(signers.iter().map(|signer| Value::from(signer.public())).collect())
}

struct Served {
    answer: Mutex<String>,
    fetches: AtomicUsize,
}

async fn serve(answer: String) -> (Arc<Served>, JwksLocation) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let served = Arc::new(Served { answer: Mutex::new(answer), fetches: AtomicUsize::new(0) });
    let state = served.clone();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = socket.read(&mut head).await.unwrap();
            state.fetches.fetch_add(1, Ordering::Relaxed);
            let body = state.answer.lock().unwrap().clone();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (served, JwksLocation::Url(url))
}

impl JwksCache {
    /// Simulates that the last fetch was long ago.
    async fn elapse_fetch_interval(&self) {
        self.last_fetch.lock().await.0 -= FETCH_INTERVAL_MIN;
    }
}

#[tokio::test]
async fn an_unknown_key_triggers_a_fetch_at_most_once_per_interval() {
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let (served, location) = serve(set(&[&old])).await;
    let cache = JwksCache::open(issuer(), &location).await.unwrap();
    assert!(cache.check(&old.token(CLAIMS), NOW_MS).is_ok());
    let token = new.token(CLAIMS);
    assert_eq!(cache.check(&token, NOW_MS), Err(AuthError::UnknownKey));
    assert!(!cache.refetch_for_unknown_key().await, "the set was fetched too recently");
    *served.answer.lock().unwrap() = set(&[&new]);
    cache.elapse_fetch_interval().await;
    assert!(cache.refetch_for_unknown_key().await);
    assert!(cache.check(&token, NOW_MS).is_ok());
    assert_eq!(cache.check(&old.token(CLAIMS), NOW_MS), Err(AuthError::UnknownKey), "the key was removed from the set");
    assert!(!cache.refetch_for_unknown_key().await);
    assert_eq!(served.fetches.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn an_invalid_response_changes_nothing() {
    let signer = Signer::new("k");
    let (served, location) = serve(set(&[&signer])).await;
    let cache = JwksCache::open(issuer(), &location).await.unwrap();
    *served.answer.lock().unwrap() = "<html>".to_owned();
    cache.elapse_fetch_interval().await;
    assert!(!cache.refetch_for_unknown_key().await);
    assert!(cache.check(&signer.token(CLAIMS), NOW_MS).is_ok());
}

#[tokio::test]
async fn a_file_is_read_again_when_it_changes() {
    let directory = std::env::temp_dir().join(format!("pleiad-keys-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("keys.json");
    let (old, new) = (Signer::new("old"), Signer::new("the new one"));
    std::fs::write(&path, set(&[&old])).unwrap();
    let cache = JwksCache::open(issuer(), &JwksLocation::File(path.clone())).await.unwrap();
    std::fs::write(&path, "not yet written").unwrap();
    cache.refresh().await;
    assert!(cache.check(&old.token(CLAIMS), NOW_MS).is_ok());
    std::fs::write(&path, set(&[&new])).unwrap();
    cache.refresh().await;
    assert!(cache.check(&new.token(CLAIMS), NOW_MS).is_ok());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_server_does_not_start_without_its_keys() {
    let nowhere = JwksLocation::File("/nowhere/keys.json".into());
    let error = JwksCache::open(issuer(), &nowhere).await.err().unwrap();
    assert!(error.to_string().contains("/nowhere/keys.json"), "{error}");
    assert!(JwksCache::open(issuer(), &JwksLocation::Url("nowhere".to_owned())).await.is_err());
}

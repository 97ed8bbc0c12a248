//! Client of the management API (docs/management.md): splits, snapshots, copies.

use azure_core::credentials::Secret;
use azure_core::hmac::hmac_sha256;
use azure_core::http::{new_http_client, Method, Request, Url};
use azure_core::time::{to_rfc7231, OffsetDateTime};
use azure_data_cosmos::clients::ContainerClient;

use crate::support::*;

/// The response as JSON, or null if it has no body; an error response panics.
pub async fn manage(endpoint: &str, method: Method, path: &str, body: Option<Value>) -> Value {
    let path = format!("_pleiad/v1/{path}");
    let link = path.split('?').next().unwrap_or_default();
    send(endpoint, method, "pleiad", link, &path, body).await
}

/// Sends a request for which the SDK has no method, signed like its own requests.
pub async fn send(endpoint: &str, method: Method, kind: &str, link: &str, path: &str, body: Option<Value>) -> Value {
    let date = to_rfc7231(&OffsetDateTime::now_utc());
    let signed = format!("{}\n{kind}\n{link}\n{}\n\n", method.as_str().to_lowercase(), date.to_lowercase());
    let signature = hmac_sha256(&signed, &Secret::from(key())).expect("a signature");

    let url = Url::parse(endpoint).and_then(|base| base.join(&format!("/{path}"))).expect("a URL");
    let mut request = Request::new(url, method);
    request.insert_header("x-ms-date", date);
    request.insert_header("authorization", format!("type=master&ver=1.0&sig={signature}"));
    request.set_body(body.map(|body| body.to_string()).unwrap_or_default());
    let response = new_http_client(None).execute_request(&request).await.expect("a response");
    let (status, body) = (u16::from(response.status()), response.into_body().collect_string().await.expect("a text"));
    assert!((200..300).contains(&status), "{path}: {status} {body}");
    serde_json::from_str(&body).unwrap_or_default()
}

impl World {
    /// Creates a client encryption key, which this SDK does not support.
    pub async fn encryption_key(&self, id: &str) {
        let link = format!("dbs/{}", self.database_name);
        let body = json!({
            "id": id, "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "d3JhcHBlZA==",
            "keyWrapMetadata": {"name": "cmk", "type": "AZURE_KEY_VAULT", "value": "https://vault/key", "algorithm": "RSA-OAEP"},
        });
        let (endpoint, path) = (self.scheme.endpoint().expect("an endpoint"), format!("{link}/clientencryptionkeys"));
        send(&endpoint, Method::Post, "clientencryptionkeys", &link, &path, Some(body)).await;
    }

    /// Splits the largest partition; returns when it has happened.
    pub async fn split(&self, container: &ContainerClient) {
        self.repartition(container, "split", json!({})).await;
    }

    /// Merges all partitions; returns when it has happened.
    pub async fn merge(&self, container: &ContainerClient) {
        let listed = self.partitions(container, Method::Get, "", None).await;
        let partitions = listed["partitions"].as_array().expect("partitions");
        let ids: Vec<&Value> = partitions.iter().map(|partition| &partition["id"]).collect();
        self.repartition(container, "merge", json!({"ids": ids})).await;
    }

    async fn repartition(&self, container: &ContainerClient, what: &str, body: Value) {
        self.partitions(container, Method::Post, &format!("/{what}?wait=true"), Some(body)).await;
    }

    async fn partitions(&self, container: &ContainerClient, method: Method, more: &str, body: Option<Value>) -> Value {
        let name = container.read(None).await.expect("the container").into_model().expect("its definition").id;
        let path = format!("containers/{}/{name}/partitions{more}", self.database_name);
        manage(&self.scheme.endpoint().expect("an endpoint"), method, &path, body).await
    }
}

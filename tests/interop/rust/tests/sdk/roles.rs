//! Bearer tokens and roles: a `TokenCredential`, such as those of azure_identity, and the permissions of its principal.

use std::path::Path;
use std::sync::Arc;

use azure_core::base64::{decode_url_safe, encode_url_safe};
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::{Duration, OffsetDateTime};
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::{AccountReference, CosmosClient, Result};
use ring::rsa::{KeyPair, KeyPairComponents, PublicKeyComponents};

use crate::readings::ask;
use crate::support::*;

both!(
    a_reader_may_read_and_not_write,
    a_contributor_may_write_and_not_manage,
    a_custom_role_allows_only_its_actions,
    a_role_of_a_group_applies_and_a_principal_without_role_is_403,
    an_invalid_token_is_401,
);

/// Claims that are signed for each token.
#[derive(Debug)]
struct Credential {
    claims: Value,
    lifetime: Duration,
}

#[async_trait::async_trait]
impl TokenCredential for Credential {
    async fn get_token(&self, scopes: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        assert!(!scopes.is_empty());
        let mut claims = self.claims.clone();
        claims["exp"] = json!((OffsetDateTime::now_utc() + self.lifetime).unix_timestamp());
        // With the real expiry time the SDK would not send an expired token.
        Ok(AccessToken::new(sign(&claims), OffsetDateTime::now_utc() + Duration::hours(1)))
    }
}

/// A JSON Web Token, RS256.
fn sign(claims: &Value) -> String {
    let file = Path::new(&std::env::var("PLEIAD_TOKENS").expect("PLEIAD_TOKENS")).join("private_key.json");
    let key: Value = serde_json::from_slice(&std::fs::read(file).expect("the key")).expect("a JSON Web Key");
    let part = |name: &str| decode_url_safe(key[name].as_str().expect("a part of the key")).expect("base64");
    let components = KeyPairComponents {
        public_key: PublicKeyComponents { n: part("n"), e: part("e") },
        d: part("d"),
        p: part("p"),
        q: part("q"),
        dP: part("dp"),
        dQ: part("dq"),
        qInv: part("qi"),
    };
    let pair = KeyPair::from_components(&components).expect("a key pair");
    let header = json!({"typ": "JWT", "alg": "RS256", "kid": key["kid"]});
    let signed = format!("{}.{}", encode_url_safe(header.to_string()), encode_url_safe(claims.to_string()));
    let mut signature = vec![0; pair.public().modulus_len()];
    let (padding, rng) = (&ring::signature::RSA_PKCS1_SHA256, ring::rand::SystemRandom::new());
    pair.sign(padding, &rng, signed.as_bytes(), &mut signature).expect("a signature");
    format!("{signed}.{}", encode_url_safe(signature))
}

fn claims(principal: &str) -> Value {
    json!({"iss": "https://issuer.example/", "aud": "https://cosmos.azure.com", "oid": principal})
}

async fn connect_by(scheme: Scheme, claims: Value, lifetime: Duration) -> Result<CosmosClient> {
    let credential: Arc<dyn TokenCredential> = Arc::new(Credential { claims, lifetime });
    connect_as(AccountReference::with_credential(scheme.account(), credential), CosmosClient::builder()).await
}

/// The container through a client of this principal.
async fn with_claims(world: &World, container: &ContainerClient, claims: Value) -> Result<ContainerClient> {
    let name = container.read(None).await.unwrap().into_model().unwrap().id;
    let client = connect_by(world.scheme, claims, Duration::hours(1)).await?;
    client.database_client(world.database_name.clone()).container_client(name.to_string(), None).await
}

/// Six items in two partitions.
async fn shop(world: &World) -> ContainerClient {
    let container = world.define(json!({})).await.unwrap();
    for n in 0..6 {
        let key = ["a", "b"][n % 2];
        create(&container, key, json!({"id": n.to_string(), "pk": key, "n": n})).await.unwrap();
    }
    container
}

async fn a_reader_may_read_and_not_write(world: World) {
    let shop = shop(&world).await;
    let target = with_claims(&world, &shop, claims("reader")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(read(&target, "a", "0").await.unwrap()["n"], 0);
        let rows = ask(&target, "SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::full_container()).await.unwrap();
        assert_eq!(rows, [0, 1, 2, 3, 4, 5]);
        refused_with(create(&target, "a", json!({"id": "new", "pk": "a"})).await, (403, 5302));
        refused_with(upsert(&target, "a", json!({"id": "0", "pk": "a"})).await, (403, 5302));
        refused_with(delete(&target, "a", "0").await, (403, 5302));
        world.split(&shop).await;
    }
}

async fn a_contributor_may_write_and_not_manage(world: World) {
    let target = with_claims(&world, &shop(&world).await, claims("contributor")).await.unwrap();
    upsert(&target, "a", json!({"id": "new", "pk": "a"})).await.unwrap();
    replace(&target, "a", json!({"id": "new", "pk": "a", "n": 1})).await.unwrap();
    delete(&target, "a", "new").await.unwrap();
    refused_with(target.delete(None).await, (403, 5300));
    let client = connect_by(world.scheme, claims("contributor"), Duration::hours(1)).await.unwrap();
    refused_with(client.create_database(&unique("d"), None).await, (403, 5300));
}

async fn a_custom_role_allows_only_its_actions(world: World) {
    let shop = shop(&world).await;
    let target = with_claims(&world, &shop, claims("collector")).await.unwrap();
    create(&target, "a", json!({"id": "new", "pk": "a"})).await.unwrap();
    refused_with(read(&target, "a", "new").await, (403, 5302));
    assert_eq!(read(&shop, "a", "new").await.unwrap()["pk"], "a");
}

async fn a_role_of_a_group_applies_and_a_principal_without_role_is_403(world: World) {
    let shop = shop(&world).await;
    let mut member = claims("unassigned");
    member["groups"] = json!(["reader"]);
    let target = with_claims(&world, &shop, member).await.unwrap();
    assert_eq!(read(&target, "a", "0").await.unwrap()["n"], 0);
    refused_with(with_claims(&world, &shop, claims("unassigned")).await, (403, 5301));
}

async fn an_invalid_token_is_401(world: World) {
    let mut wrong_audience = claims("reader");
    wrong_audience["aud"] = json!("https://vault.azure.net");
    let mut wrong_issuer = claims("reader");
    wrong_issuer["iss"] = json!("https://other.example/");
    for (claims, hours) in [(wrong_audience, 1), (wrong_issuer, 1), (claims("reader"), -1)] {
        refused(connect_by(world.scheme, claims, Duration::hours(hours)).await, 401);
    }
}

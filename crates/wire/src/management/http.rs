//! The management API over HTTP: other paths than the NoSQL API, the same keys, signatures and errors. Its requests cost
//! no request units.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use pleiad_model::env::OffsetEnv;

use super::authority::{ManagementAuthority, actions_of};
use super::{ManagementApi, ManagementRequest, ManagementVerb, link, names, signing, snapshots};
use crate::http::ConnectionState;
use crate::nosql::http::{Exchange, NosqlHttp};
use crate::nosql::is_declined;
use crate::nosql::reply::Handled;

pub struct ManagementHttp {
    nosql: Arc<NosqlHttp>,
    /// The clock that tests may advance; `None` if test controls are disabled.
    clock: Option<Arc<OffsetEnv>>,
}

impl ManagementHttp {
    pub fn new(nosql: Arc<NosqlHttp>, clock: Option<Arc<OffsetEnv>>) -> Self {
        ManagementHttp { nosql, clock }
    }

    /// `path` is the part below the root of this API.
    pub async fn call(
        &self,
        connection: &ConnectionState,
        path: &str,
        parts: &Parts,
        body: Incoming,
    ) -> Response<Full<Bytes>> {
        let exchange = self.nosql.begin(parts);
        let handled = match self.handle(connection, path, &exchange, body).await {
            Ok(reply) => Ok(reply.charged(0.0)),
            Err(mut error) => {
                error.metadata.charge_ru = 0.0;
                Err(error)
            }
        };
        self.nosql.end(&exchange, "Management", handled)
    }

    async fn handle(
        &self,
        connection: &ConnectionState,
        path: &str,
        exchange: &Exchange<'_>,
        body: Incoming,
    ) -> Handled {
        let (parts, names) = (exchange.parts, names(path)?);
        let caller = self.nosql.caller(parts, signing(&link(&names)), parts.method == Method::GET).await?;
        let authority = ManagementAuthority {
            caller,
            account: &self.nosql.api().account.id,
            verb: parts.method.as_str(),
            path: parts.uri.path().trim_start_matches('/'),
            activity: exchange.activity(),
        };
        let verb = verb_of(&parts.method);
        // Before the body: a caller without access sends none.
        self.nosql.api().account_host.engine().authorize(&authority, actions_of(verb))?;
        let received = self.nosql.body(connection, &parts.method, body).await?;
        let (query, body) = (parts.uri.query(), received.bytes.clone());
        self.answer(&authority, &ManagementRequest { verb, names, query, body }).await
    }

    async fn answer(&self, authority: &ManagementAuthority<'_>, request: &ManagementRequest<'_>) -> Handled {
        let account_host = &self.nosql.api().account_host;
        let mut engine = account_host.engine();
        if let Some(route) = snapshots::SnapshotRoute::parse(&request.names) {
            let at = engine.authorize(authority, actions_of(request.verb))?;
            return snapshots::answer(account_host, &at, route, request).await;
        }
        loop {
            let api = ManagementApi { engine: &engine, authority, clock: self.clock.as_deref() };
            let handled = api.answer(request).await;
            match account_host.replacement_for(&engine, is_declined(&handled)).await? {
                None => return handled,
                Some(next) => engine = next,
            }
        }
    }
}

fn verb_of(method: &Method) -> ManagementVerb {
    match *method {
        Method::GET => ManagementVerb::Get,
        Method::PUT => ManagementVerb::Put,
        Method::POST => ManagementVerb::Post,
        Method::DELETE => ManagementVerb::Delete,
        _ => ManagementVerb::Other,
    }
}

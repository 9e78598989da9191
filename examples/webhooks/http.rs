//! The little HTTP/1.1 that the example needs, on hyper: post one document, answer posts.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The header by which a receiver knows a repeated request.
const KEY: &str = "idempotency-key";

/// The largest document that is read: far above an order.
const BODY_BYTES_MAX: usize = 64 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Posts a JSON document under an idempotency key; returns the status and the text of the answer.
///
/// The connection lives inside this future, so that dropping it hangs up.
pub(crate) async fn post(
    address: SocketAddr,
    key: &str,
    json: String,
) -> Result<(u16, String), BoxError> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::post("/orders")
        .header(HOST, address.to_string())
        .header(CONTENT_TYPE, "application/json")
        .header(KEY, key)
        .body(Full::new(Bytes::from(json)))?;
    let exchange = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer, BODY_BYTES_MAX).collect().await?;
        Ok((
            status,
            String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        ))
    };
    // The connection is over once the exchange has dropped its sender.
    let (answer, connection) = tokio::join!(exchange, connection);
    connection?;
    answer
}

/// Somebody who answers posts.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Returns the status and the text for a document that came under a key.
    fn answer(&self, key: &str, json: &[u8]) -> impl Future<Output = (u16, String)> + Send;
}

/// Serves until it is dropped. A client that hangs up drops the answer it was waiting for.
pub(crate) async fn serve(listener: TcpListener, answers: Arc<impl Answer>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client that was gone before its turn is nobody's loss.
                let Ok((stream, _)) = accepted else { continue };
                let answers = Arc::clone(&answers);
                let service = service_fn(move |request| respond(Arc::clone(&answers), request));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                connections.spawn(connection);
            }
            // Ended connections are forgotten; that a client hung up is its own business.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn respond(
    answers: Arc<impl Answer>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let key = parts.headers.get(KEY).and_then(|key| key.to_str().ok());
    let (status, text) = match (&parts.method, key) {
        (&Method::POST, Some(key)) => match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => answers.answer(key, &body.to_bytes()).await,
            Err(error) => (400, error.to_string()),
        },
        (&Method::POST, None) => (400, format!("the header {KEY} is missing")),
        _ => (405, "only POST".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(response)
}

//! Shared state that a worker is given once and handlers take as arguments.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::context::RunCx;
use super::error::JobError;

/// Shared state as a handler's argument, such as a client or a pool. Clones share it.
///
/// Every `Data<T>` that a handler takes must be given to the worker with
/// `Worker::builder(&queue).data(value)`; a missing one is an error when the worker is built.
///
/// ```
/// use queue_runtime::{Data, job};
///
/// struct Mailer {
///     from: String,
/// }
///
/// #[job]
/// async fn send_welcome(user_id: i64, mailer: Data<Mailer>) {
///     println!("{} welcomes user {user_id}", mailer.from);
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // In a worker: `.data(Mailer { .. })`. In a unit test the job is called like any function:
/// send_welcome(42, Data::new(Mailer { from: "us".into() })).await;
/// # }
/// ```
///
/// A trait object is shared as `Data<Arc<dyn Trait>>`, since a worker keeps one value per sized
/// type. Program and test then give different implementations of it:
///
/// ```standalone_crate
/// use std::sync::Arc;
///
/// use queue_runtime::{Data, Queue, Worker, job};
///
/// trait Mail: Send + Sync {
///     fn send(&self, user_id: i64);
/// }
///
/// struct Printed;
///
/// impl Mail for Printed {
///     fn send(&self, user_id: i64) {
///         println!("welcome, user {user_id}");
///     }
/// }
///
/// #[job]
/// async fn send_welcome(user_id: i64, mail: Data<Arc<dyn Mail>>) {
///     mail.send(user_id);
/// }
///
/// let mail: Arc<dyn Mail> = Arc::new(Printed);
/// let queue = Queue::in_memory();
/// let worker = Worker::builder(&queue).data(mail).build()?;
/// # Ok::<(), queue_runtime::BuildError>(())
/// ```
pub struct Data<T: ?Sized>(Arc<T>);

impl<T> Data<T> {
    /// Wraps a value, as a test does that calls a handler directly.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: ?Sized> Clone for Data<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Data<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> From<Arc<T>> for Data<T> {
    fn from(shared: Arc<T>) -> Self {
        Self(shared)
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Data<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The state a worker was given, one value per type.
#[derive(Default)]
pub struct DataMap(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl DataMap {
    /// Adds a value; one of the same type takes the place of the one before.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: Data<T>) {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// Returns the value of a type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Data<T>> {
        self.0
            .get(&TypeId::of::<T>())
            .and_then(|value| value.downcast_ref::<Data<T>>())
            .cloned()
    }

    /// Says whether a value of a type was given.
    pub fn has<T: Send + Sync + 'static>(&self) -> bool {
        self.0.contains_key(&TypeId::of::<T>())
    }
}

impl fmt::Debug for DataMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataMap({} types)", self.0.len())
    }
}

/// An argument that is not payload: it is made for each attempt from what the worker has.
///
/// `JobContext` and `Data<T>` are such arguments. A type of your own is marked with `#[inject]`:
///
/// ```
/// use queue_runtime::handler::{DataMap, RunCx};
/// use queue_runtime::{Data, Inject, JobContext, JobError, job};
///
/// struct Settings {
///     tenant: String,
/// }
///
/// /// The tenant and the attempt, for log lines.
/// struct Origin(String);
///
/// impl Inject for Origin {
///     fn present(data: &DataMap) -> bool {
///         data.has::<Settings>()
///     }
///
///     fn inject(cx: &RunCx) -> Result<Self, JobError> {
///         let settings = Data::<Settings>::inject(cx)?;
///         let attempt = JobContext::inject(cx)?.attempt();
///         Ok(Self(format!("{} (attempt {attempt})", settings.tenant)))
///     }
/// }
///
/// #[job]
/// async fn send_welcome(user_id: i64, #[inject] origin: Origin) {
///     println!("{}: welcome, user {user_id}", origin.0);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be injected into a job",
    label = "not an injectable type",
    note = "wrap shared state as `Data<{Self}>` and give it to the worker with `.data(..)`",
    note = "or implement `queue_runtime::Inject` for it"
)]
pub trait Inject: Sized {
    /// Names the type that the worker must be given, for the message that it is missing.
    fn type_name() -> &'static str {
        type_name::<Self>()
    }

    /// Says whether the worker has what this needs.
    fn present(_data: &DataMap) -> bool {
        true
    }

    /// Makes the argument.
    ///
    /// # Errors
    /// Whatever should become of the attempt instead.
    fn inject(cx: &RunCx) -> Result<Self, JobError>;
}

impl<T: Send + Sync + 'static> Inject for Data<T> {
    fn type_name() -> &'static str {
        type_name::<T>()
    }

    fn present(data: &DataMap) -> bool {
        data.has::<T>()
    }

    fn inject(cx: &RunCx) -> Result<Self, JobError> {
        cx.data().get::<T>().ok_or_else(|| {
            JobError::permanent(format!(
                "the worker was not given `{}`; add `.data(..)` to its builder",
                type_name::<T>()
            ))
        })
    }
}

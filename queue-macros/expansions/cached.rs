//! What `#[job]` writes for a job that is cached. Kept equal by a test.

#[cfg(feature = "shop")]
pub(crate) async fn refresh_product(
    #[allow(unused_variables)]
    product_id: u64,
    #[allow(unused_variables)]
    shop: Shop,
    #[allow(unused_variables)]
    version: u64,
) -> Result<Refreshed<Product>, ShopError> {
    load(product_id, shop, version).await
}
#[cfg(feature = "shop")]
/// The payload of the job [`refresh_product`](fn@refresh_product), with its arguments as fields.
#[derive(Clone, Debug)]
#[allow(dead_code, nonstandard_style, private_interfaces, clippy::type_complexity)]
pub(crate) struct RefreshProduct {
    /// The job's argument `product_id`.
    pub(crate) product_id: u64,
    /// The job's argument `shop`.
    pub(crate) shop: Shop,
    /// The job's argument `version`.
    pub(crate) version: u64,
}
#[cfg(feature = "shop")]
/// Makes and enqueues jobs that run [`refresh_product`](fn@refresh_product).
#[allow(dead_code, nonstandard_style)]
#[allow(missing_copy_implementations, missing_debug_implementations)]
pub(crate) struct refresh_product {}
#[cfg(feature = "shop")]
#[allow(dead_code, nonstandard_style, private_interfaces, clippy::all)]
impl refresh_product {
    /// Makes the payload of one job, to be enqueued later.
    pub(crate) fn new(product_id: u64, shop: Shop, version: u64) -> RefreshProduct {
        RefreshProduct {
            product_id,
            shop,
            version,
        }
    }
    /// Starts to enqueue one job; nothing happens until the answer is awaited.
    pub(crate) fn enqueue<'q>(
        queue: impl ::queue_runtime::private::EnqueueTarget<'q>,
        product_id: u64,
        shop: Shop,
        version: u64,
    ) -> ::queue_runtime::private::Enqueue<'q, RefreshProduct> {
        ::queue_runtime::private::Enqueue::new(
            queue,
            Self::new(product_id, shop, version),
        )
    }
}
#[cfg(feature = "shop")]
#[allow(deprecated, unused_imports, unused_variables, clippy::type_complexity)]
const _: () = {
    use ::queue_runtime::private as __q;
    static __JOB_DEF: __q::JobDef = __q::JobDef::new(
            "refresh_product",
            __job_run,
            __q::Source {
                package: ::core::env!("CARGO_PKG_NAME"),
                module: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        )
        .fields(
            &[
                __q::Field::new("product_id", "u64", <u64 as __q::PayloadArg>::traced),
                __q::Field::new("store", "Shop", <Shop as __q::PayloadArg>::traced)
                    .aliases(&["branch"]),
                __q::Field::new("version", "u64", <u64 as __q::PayloadArg>::traced)
                    .default(),
            ],
        )
        .needs(&[])
        .check(__q::check::<RefreshProduct>)
        .idempotency_for(__q::Duration::from_millis(86400000u64))
        .schema(3u32)
        .keys(
            __q::Some("product_id, shop.id"),
            __q::Some("{product_id}/{version}"),
            __q::Some("product-{product_id}"),
        )
        .upcast({
            let upcast: __q::Upcast = to_next_schema;
            upcast
        })
        .cache();
    impl __q::Job for RefreshProduct {
        const DEF: &'static __q::JobDef = &__JOB_DEF;
        fn encode(
            &self,
            w: &mut __q::PayloadWriter,
        ) -> __q::Result<(), __q::PayloadError> {
            <u64 as __q::PayloadArg>::put(&self.product_id, "product_id", w)?;
            <Shop as __q::PayloadArg>::put(&self.shop, "store", w)?;
            <u64 as __q::PayloadArg>::put(&self.version, "version", w)?;
            __q::Ok(())
        }
        fn decode(r: &__q::PayloadReader<'_>) -> __q::Result<Self, __q::PayloadError> {
            __q::Ok(RefreshProduct {
                product_id: <u64 as __q::PayloadArg>::take(r, "product_id")?,
                shop: <Shop as __q::PayloadArg>::take_any(r, &["store", "branch"])?,
                version: <u64 as __q::PayloadArg>::take_or(
                    r,
                    &["version"],
                    first_version,
                )?,
            })
        }
        fn dedupe_key(&self) -> __q::Option<__q::String> {
            let mut k = __q::KeyWriter::new();
            <u64 as __q::KeyPart>::write(&self.product_id, &mut k);
            <_ as __q::KeyPart>::write(&self.shop.id, &mut k);
            __q::Some(k.finish())
        }
        fn idempotency_key(&self) -> __q::Option<__q::String> {
            #[allow(non_snake_case)]
            fn __key(product_id: &u64, version: &u64) -> __q::String {
                ::std::format!("{product_id}/{version}")
            }
            let _ = <u64 as __q::KeyPart>::write;
            let _ = <u64 as __q::KeyPart>::write;
            __q::Some(__key(&self.product_id, &self.version))
        }
        fn cache_key(&self) -> __q::Option<__q::String> {
            #[allow(non_snake_case)]
            fn __key(product_id: &u64) -> __q::String {
                ::std::format!("product-{product_id}")
            }
            let _ = <u64 as __q::KeyPart>::write;
            __q::Some(__key(&self.product_id))
        }
        fn cache_version(&self) -> __q::Option<u64> {
            <u64 as __q::CacheVersion>::version(&self.version)
        }
    }
    fn __job_run<'a>(cx: &'a __q::RunCx) -> __q::BoxFuture<'a, __q::RunResult> {
        __q::Box::pin(async move {
            let payload: RefreshProduct = __q::decode(cx)?;
            let call: __q::BoxFuture<'_, _> = __q::Box::pin(
                refresh_product(payload.product_id, payload.shop, payload.version),
            );
            __q::ended(
                <Result<
                    Refreshed<Product>,
                    ShopError,
                > as __q::JobReturn>::split(call.await),
                <<Result<
                    Refreshed<Product>,
                    ShopError,
                > as __q::JobReturn>::Ok as __q::RefreshedOutput>::into_value,
                |error| {
                    let retry_if: fn(
                        &<Result<Refreshed<Product>, ShopError> as __q::JobReturn>::Err,
                    ) -> bool = is_temporary;
                    __q::Some(
                        if retry_if(error) {
                            __q::Class::Retry
                        } else {
                            __q::Class::Permanent
                        },
                    )
                },
                <<Result<
                    Refreshed<Product>,
                    ShopError,
                > as __q::JobReturn>::Err as __q::IntoJobError>::into_job_error,
            )
        })
    }
    __q::inventory::submit!(__q::Registration(& __JOB_DEF));
    const _: () = __q::abi_1();
};

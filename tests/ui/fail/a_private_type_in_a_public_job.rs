//! One error: the compiler reports it for the function alone.

#![deny(private_interfaces)]

mod jobs {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Hidden;

    #[queue_runtime::job]
    pub async fn send(hidden: Hidden) {
        drop(hidden);
    }
}

fn main() {}

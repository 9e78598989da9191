//! One error: the compiler reports it.



mod send {
    #[queue_runtime::job]
    pub async fn send(user_id: u64) {
        let _ = user_id;
    }
}

pub use send::send;

fn main() {}

//! A job may return nothing, or a `Result` with any common error, under any alias.

use queue_runtime::{Job, JobError, job};

type Short<T> = std::result::Result<T, std::fmt::Error>;

#[job]
async fn nothing() {}

#[job]
async fn job_error() -> Result<(), JobError> {
    std::fs::metadata("/")?;
    Ok(())
}

#[job]
async fn anyhow_result() -> anyhow::Result<u32> {
    Ok(std::fs::metadata("/").map(|_| 1)?)
}

#[job]
async fn io_result() -> std::io::Result<Vec<String>> {
    Ok(Vec::new())
}

#[job]
async fn string() -> Result<(), String> {
    Err("no".to_owned())
}

#[job]
async fn str_slice() -> Result<(), &'static str> {
    Err("no")
}

#[job]
async fn boxed() -> Result<Option<u8>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(None)
}

#[job]
async fn alias() -> Short<()> {
    Ok(())
}

pub fn main() {
    let names = [
        NothingJob::DEF.name(),
        JobErrorJob::DEF.name(),
        AnyhowResultJob::DEF.name(),
        IoResultJob::DEF.name(),
        StringJob::DEF.name(),
        StrSliceJob::DEF.name(),
        BoxedJob::DEF.name(),
        AliasJob::DEF.name(),
    ];
    assert_eq!(names.len(), 8);
    assert!(names.contains(&"anyhow_result"));
}

// SPDX-License-Identifier: BSL-1.0

use crate::{fail, run, Found, Sizes};
use std::io::Read;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

/// The process ends when its standard input is closed.
fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0)
    });
}

async fn echo_all(mut peer: TcpStream) -> std::io::Result<()> {
    peer.set_nodelay(true)?;
    let mut data = [0; 4096];
    loop {
        let got = peer.read(&mut data).await?;
        if got == 0 {
            return Ok(());
        }
        peer.write_all(&data[..got]).await?;
    }
}

/// A task a connection. Of one worker, current_thread is the faster runtime.
pub fn echo(workers: usize, _: &Sizes) -> Found {
    end_with_stdin();
    let mut how = if workers > 1 { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    run(how.worker_threads(workers).enable_io().build().unwrap(), async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap().port());
        loop {
            match listener.accept().await {
                Ok((peer, _)) => tokio::spawn(echo_all(peer)),
                Err(e) => fail(&e.to_string()),
            };
        }
    })
}

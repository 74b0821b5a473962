//! The HTTP client of hooks, exports and the daemon's own requests.

use std::time::Duration;

use ureq::config::ConfigBuilder;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

/// Trusts the platform's certificates, because a company's own authority is only there,
/// follows no redirects, and returns every status as a response.
pub fn client_config(timeout: Duration) -> ConfigBuilder<AgentScope> {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("anyhook/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls.build())
}

import Foundation

/// The configuration of nginx. The defaults do not limit requests.
struct NginxConfiguration {
  var streamsPerConnection = 128
  var requestsPerConnection = 1_000_000
  var keepAlive = "600s"
  /// Further locations and directives of a server block.
  var locations = ""
  /// Whether clients must send a certificate of the authority; `/who` responds with its name.
  var asksForClients = false

  /// The body of `/item`.
  static let item = #"{"id":17,"name":"Widget","tags":["alpha","beta"]}"#

  func write(to file: URL, ports: [UInt16], certificates: Certificates) throws {
    let folder = file.deletingLastPathComponent()
    for name in ["files", "stored"] {
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent(name), withIntermediateDirectories: true)
    }
    // The output of htpasswd for anna with the password "sésame".
    try Data("anna:$apr1$abcd1234$VCGEtGtjQINnG.8XescfR/\n".utf8)
      .write(to: folder.appendingPathComponent("users"))
    try Data(text(folder.path, ports, certificates).utf8).write(to: file)
  }

  private func text(_ folder: String, _ ports: [UInt16], _ certificates: Certificates) -> String {
    """
    worker_processes 1;
    daemon off;
    pid \(folder)/nginx.pid;
    worker_rlimit_nofile 8192;
    \(geteuid() == 0 ? "user root;" : "")
    events { worker_connections 4096; multi_accept on; }
    http {
      client_body_temp_path \(folder)/body;
      proxy_temp_path \(folder)/proxy;
      fastcgi_temp_path \(folder)/fastcgi;
      uwsgi_temp_path \(folder)/uwsgi;
      scgi_temp_path \(folder)/scgi;
      log_format request '$connection $server_protocol $status $request_length $request_uri';
      access_log \(folder)/access.log request;

      tcp_nodelay on;
      keepalive_timeout \(keepAlive);
      keepalive_requests \(requestsPerConnection);
      keepalive_time 24h;
      client_max_body_size 100m;
      http2_max_concurrent_streams \(streamsPerConnection);
      ssl_certificate \(certificates.certificate);
      ssl_certificate_key \(certificates.key);
      ssl_session_cache shared:sessions:1m;

      server {
        listen 127.0.0.1:\(ports[0]) backlog=2048;
        listen unix:\(folder)/socket;
        listen 127.0.0.1:\(ports[1]) ssl backlog=2048;
        listen 127.0.0.1:\(ports[2]) ssl http2 backlog=2048;
        listen 127.0.0.1:\(ports[3]) http2 backlog=2048;
        location /item { default_type application/json; return 200 '\(Self.item)'; }
        location /files/ { alias \(folder)/files/; }
        location /stored/ { alias \(folder)/stored/; dav_methods PUT DELETE; }
        location /refused { client_max_body_size 1k; proxy_pass http://127.0.0.1:1; }
        location /status { stub_status; }
        location /protected/ {
          alias \(folder)/files/; auth_basic "files"; auth_basic_user_file \(folder)/users;
        }
        location /unread { return 200 'not read'; }
        location /slow/ { alias \(folder)/files/; limit_rate 64k; }
        \(asksForClients ? "ssl_client_certificate \(certificates.authority); ssl_verify_client on;" : "")
        location /who { return 200 $ssl_client_s_dn; }
        \(locations)
      }
    }

    """
  }
}

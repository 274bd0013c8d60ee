import Foundation
import Scorecard

/// The configuration file of nginx.
struct ServerConfiguration {
  var folder: String
  var ports: [WireProtocol: UInt16]

  /// A document of 200 bytes.
  static let item = """
    {"id":12345,"name":"Widget Mark II","price":1299.95,"tags":["alpha","beta","gamma"],"active":true,\
    "owner":{"id":77,"email":"someone@example.com"},"created":"2026-01-02T03:04:05Z","notes":"unchanging"}
    """

  var text: String {
    """
    worker_processes 1;
    daemon off;
    pid \(folder)/nginx.pid;
    error_log \(folder)/error.log warn;
    worker_rlimit_nofile 8192;
    \(geteuid() == 0 ? "user root;" : "")
    events { worker_connections 4096; multi_accept on; }
    http {
      client_body_temp_path \(folder)/body;
      proxy_temp_path \(folder)/proxy;
      fastcgi_temp_path \(folder)/fastcgi;
      uwsgi_temp_path \(folder)/uwsgi;
      scgi_temp_path \(folder)/scgi;

      # One line for each connection, not for each request.
      map $connection_requests $opens { 1 1; default 0; }
      log_format opening '$server_protocol';
      access_log \(folder)/openings.log opening if=$opens;

      sendfile on;
      tcp_nodelay on;
      keepalive_timeout 600s;
      keepalive_requests 1000000000;
      keepalive_time 24h;
      ssl_certificate \(folder)/server.pem;
      ssl_certificate_key \(folder)/server.key;
      ssl_protocols TLSv1.2 TLSv1.3;
      ssl_session_cache shared:sessions:1m;

      server {
        listen 127.0.0.1:\(ports[.http1] ?? 0) backlog=1024;
        listen 127.0.0.1:\(ports[.https1] ?? 0) ssl backlog=1024;
        listen 127.0.0.1:\(ports[.h2] ?? 0) ssl http2 backlog=1024;
        location = /content { alias \(folder)/\(Server.content); default_type application/octet-stream; }
        location = /item { default_type application/json; return 200 '\(Self.item)'; }
      }
    }

    """
  }
}

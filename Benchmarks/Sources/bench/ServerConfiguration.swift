import Foundation
import Scorecard

/// The configuration file of nginx.
struct ServerConfiguration {
  var folder: String
  var ports: [Listener: UInt16]

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
    worker_rlimit_nofile 32768;
    \(geteuid() == 0 ? "user root;" : "")
    events { worker_connections 16384; multi_accept on; }
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

      # Requests of /held wait for their turn, so that very many are in flight at once.
      limit_req_zone $server_port zone=held:1m rate=4000r/s;

      server {
        listen 127.0.0.1:\(port(.http1)) backlog=4096;
        listen 127.0.0.1:\(port(.https1)) ssl backlog=4096;
        listen 127.0.0.1:\(port(.h2)) ssl http2 backlog=4096;
        location = /content { alias \(folder)/\(Server.content); default_type application/octet-stream; }
        location = /item { default_type application/json; return 200 '\(Self.item)'; }
        \(everyday)
        \(closed)
        \(held)
      }
      server {
        listen 127.0.0.1:\(port(.fresh)) ssl backlog=4096;
        ssl_session_tickets off;
        ssl_session_cache off;
        \(closed)
      }
    }

    """
  }

  private func port(_ listener: Listener) -> UInt16 { ports[listener] ?? 0 }

  /// `return` would answer at once.
  private var held: String {
    "location = /held { limit_req zone=held burst=20000; alias \(folder)/item; default_type application/json; }"
  }

  /// The connection ends after this response.
  private var closed: String {
    "location = /closed { keepalive_timeout 0; default_type application/json; return 200 '\(Self.item)'; }"
  }

  /// The locations for `Row.everyday`. Digest is not verified, because only the client is measured.
  private var everyday: String {
    """
    location = /cookies {
      default_type application/json;
      add_header Set-Cookie "session=0123456789abcdef; Path=/cookies; HttpOnly";
      return 200 '\(Self.item)';
    }
    location = /redirect { return 302 /item; }
    location = /compressed {
      alias \(folder)/item.gz;
      default_type application/json;
      add_header Content-Encoding gzip;
      etag off;
      if_modified_since off;
      add_header Last-Modified "";
    }
    location = /digest {
      default_type application/json;
      add_header WWW-Authenticate 'Digest realm="bench", qop="auth", algorithm=SHA-256, nonce="0123456789"' always;
      if ($http_authorization = "") { return 401; }
      return 200 '\(Self.item)';
    }
    """
  }
}

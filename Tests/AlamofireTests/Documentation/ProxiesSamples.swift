import Alamofire

// Samples of Proxies.md; see `SampleTests`.

private func show(_ value: Any) {}

private func proxies(secret: String) {
  var options = TransportOptions()
  options.proxy = .http("proxy.example.com", port: 3128, username: "ann", password: secret)
  options.proxy = .socks5h("127.0.0.1", port: 9050)  // the proxy looks up names
  options.proxy = .none  // regardless of the environment
  let session = Session(transportOptions: options)
  show(session)
}

private func server(secret: String) {
  var options = TransportOptions()
  var server = ProxyServer(
    .https, host: "proxy.example.com", port: 8443, username: "ann", password: secret)
  server.authentication = .negotiated  // Digest or NTLM after a challenge
  server.bypass = ["localhost", ".internal.example.com", "10.0.0.0/8"]
  server.trustStore = .file("/etc/company/authorities.pem")
  options.proxy = .server(server)
  show(options)
}

private func routes() {
  var options = TransportOptions()
  options.unixSocket = "/run/docker.sock"
  let session = Session(transportOptions: options)
  let request = session.request("http://localhost/v1.43/containers/json")
  request.responseString(queue: .global()) { print($0.result) }
  show(session)
}

private func overrides() {
  var options = TransportOptions()
  options.hostOverrides = [.init(host: "example.com", target: "10.0.0.7", targetPort: 8443)]
  options.nameServiceURL = "https://dns.example.net/dns-query"
  let session = Session(transportOptions: options)
  show(session)
}

func proxiesByScheme() {
  var options = TransportOptions()
  options.proxy = .perScheme(http: .environment, https: .socks5h("127.0.0.1", port: 9050))
  _ = options
}

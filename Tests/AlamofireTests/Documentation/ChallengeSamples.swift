import Alamofire

// Samples of the comments on challenges and proxies; see `SampleTests`.

private func show(_ value: Any) {}

private func proxies(secret: String) {
  var options = TransportOptions()
  options.proxy = .http("proxy.example.com", port: 3128, username: "ann", password: secret)
  options.proxy = .socks5h("127.0.0.1", port: 9050)
  options.proxy = .none
  let session = Session(transportOptions: options)
  show(session)
}

private func proxies(perScheme options: inout TransportOptions) {
  options.proxy = .perScheme(http: .environment, https: .socks5h("127.0.0.1", port: 9050))
}

private func proxyServer(secret: String, options: inout TransportOptions) {
  var server = ProxyServer(
    .http, host: "proxy.example.com", port: 3128, username: "ann", password: secret)
  server.authentication = .negotiated
  server.bypass = ["localhost", ".internal.example.com", "10.0.0.0/8"]
  options.proxy = .server(server)
}

private func credentials(secret: String) {
  AF.request("https://example.com/private")
    .authenticate(username: "ann", password: secret)
    .responseString { response in print(response.result) }
}

import Alamofire

// Samples of the comments on host policies; see `SampleTests`.

private func strictTransportSecurity() async {
  let hosts = StrictTransportSecurity()
  hosts.preload("example.com")
  var options = TransportOptions()
  options.strictTransportSecurity = hosts
  let session = Session(transportOptions: options)
  let response = await session.request("http://example.com/item").serializingData().response
  // response.response?.url is https://example.com/item
  _ = response
}

private func keptHosts() {
  let folder = URL(fileURLWithPath: "/var/lib/shop", isDirectory: true)
  let hosts = StrictTransportSecurity(file: folder.appendingPathComponent("hosts.txt"))
  if let error = hosts.storageError { print(error.localizedDescription) }
}

private func alternativeServices() {
  var options = TransportOptions()
  options.alternativeServices = AlternativeServices()
  let session = Session(transportOptions: options)
  _ = session
}

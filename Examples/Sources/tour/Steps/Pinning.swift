import Alamofire
import HTTPTestServer

let pinning = Step("Pinned keys and client certificates") { stage in
  var options = TransportOptions()
  options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
  let url = stage.secureServer.url("/get")

  let certificates = try Certificate.all(in: Data(TestIdentity.localhost.certificatePEM.utf8))
  let keys = certificates.compactMap(\.publicKey)
  stage.show("the pin", keys.first.map { "\($0.pin.description.prefix(24))…" } ?? "none")

  let pinned = Session(
    serverTrustManager: ServerTrustManager(evaluators: ["localhost": .publicKeys(keys: keys)]),
    transportOptions: options)
  let answer = await pinned.request(url).serializingData().response
  stage.show("with the right key", "\(answer.response?.statusCode ?? 0)")

  let other = try TestIdentity(.init(commonName: "other")).certificatePEM
  let strangers = try Certificate.all(in: Data(other.utf8)).compactMap(\.publicKey)
  let wary = Session(
    serverTrustManager: ServerTrustManager(evaluators: ["localhost": .publicKeys(keys: strangers)]),
    transportOptions: options)
  let refusal = await wary.request(url).serializingData().response
  stage.show("with another one", refusal.error?.isServerTrustEvaluationError == true ? "refused" : "accepted")

  let server = try HTTPTestServer(
    .tls(.localhost, TLSOptions(clientAuthority: TestIdentity.localhostAuthority.caPEM)))
  let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
  options.clientIdentity = try ClientIdentity(
    pem: Data(ada.certificatePEM.utf8), privateKey: Data(ada.privateKeyPEM.utf8))
  let client = Session(transportOptions: options)
  let status = await client.request(server.url("/get")).serializingData().response.response?.statusCode
  stage.show("as \(options.clientIdentity?.subject ?? "nobody")", "\(status ?? 0)")
}

import Alamofire

let trust = Step("TLS with an authority of your own") { stage in
  let url = stage.secureServer.url("/get")

  let refused = await AF.request(url).serializingData().response
  guard let error = refused.error?.underlyingError as? URLError else {
    throw Surprise("A server that nobody knows was trusted.")
  }
  stage.show("with the system's authorities", "refused")
  stage.explain(error.localizedDescription)

  var options = TransportOptions()
  options.trustStore = .pem(stage.authority)
  let session = Session(transportOptions: options)
  let response = await session.request(url).serializingData().response
  let transaction = response.metrics?.transactionMetrics.last
  stage.show("with trustStore = .pem(authority)", "\(response.response?.statusCode ?? 0)")
  stage.show("agreed on", transaction?.negotiatedTLSProtocolVersion?.description ?? "no TLS")
}

import Alamofire

let storage = Step("Cookies and the cache") { stage in
  // Stores in memory, and is released with the session.
  let session = Session(configuration: .af.ephemeral)

  _ = await session.request(stage.server.url("/cookies/set?flavour=oat")).serializingData().response
  let sent = await session.request(stage.server.url("/cookies")).serializingString().response
  stage.show("a cookie that came back", sent.value?.contains("oat") == true ? "oat" : "none")

  let url = stage.server.url("/cache/60")
  for name in ["asked once", "asked twice"] {
    let response = await session.request(url).serializingData().response
    let origin = response.metrics?.transactionMetrics.last?.resourceFetchType
    stage.show(name, origin == .localCache ? "from the cache" : "from the network")
  }
}

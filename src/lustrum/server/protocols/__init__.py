"""The protocols of other servers over the same questions: PxWebApi 2, SDMX REST, Eurostat's statistics API."""

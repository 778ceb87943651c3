"""The protocols of other table servers: PxWebApi 2, SDMX REST and Eurostat's statistics API, over the same questions."""
